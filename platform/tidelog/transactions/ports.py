"""What transactions need of consumer groups: the port that `tidelog.groups` implements, and its values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, Protocol

from tidelog.log.base.errors import InvalidTransactionStateError
from tidelog.transactions.model import TransactionKey


@dataclass(frozen=True, slots=True)
class GroupIdentity:
    """The committer of offsets: a member of a group's generation, or none (generation -1)."""

    group_id: str
    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class OffsetToCommit:
    """The offset of the next record to read, and what a committed offset carries besides."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupOffsets(Protocol):
    """Groups' offsets that wait for a transaction's end. Methods may be called from many threads."""

    def add_pending(
        self, group: GroupIdentity, offsets: Mapping[tuple[str, int], OffsetToCommit], key: TransactionKey
    ) -> None:
        """Let offsets of {(topic, partition)} wait for the end of a transaction; durable on return.

        The group fences them by member and generation, as a commit: raises what a commit of offsets raises.
        """

    def settle(self, group_id: str, key: TransactionKey, *, committed: bool) -> None:
        """Make the offsets that wait for a transaction the group's, or drop them. A repeat changes nothing."""


class NoGroups:
    """The port of a program that commits no groups' offsets."""

    def add_pending(
        self,
        group: GroupIdentity,
        offsets: Mapping[tuple[str, int], OffsetToCommit],  # noqa: ARG002
        key: TransactionKey,
    ) -> NoReturn:
        """Refuse."""
        raise _no_groups(group.group_id, key)

    def settle(self, group_id: str, key: TransactionKey, *, committed: bool) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        raise _no_groups(group_id, key)


def _no_groups(group_id: str, key: TransactionKey) -> InvalidTransactionStateError:
    return InvalidTransactionStateError(
        f"A transaction of {key.transactional_id!r} holds offsets of group {group_id!r}, and this program commits none:"
        " two programs share one transactional id. Give each its own."
    )

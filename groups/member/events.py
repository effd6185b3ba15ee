"""A membership's configuration, what it needs of the group's log, and the events that it gives its owner."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tidelog.groups.assignors.assign import ASSIGNORS
from tidelog.groups.assignors.server_side import SERVER_ASSIGNORS
from tidelog.groups.model import AnyGroup, Decision, GroupView, TopicPartition
from tidelog.groups.rules.members import check_group_id
from tidelog.groups.rules.modern.topics import Topics
from tidelog.log.base.errors import InvalidConfigError, TidelogError

R = TypeVar("R")

COOPERATIVE = "cooperative-sticky"


class GroupDoor(Protocol):
    """What a membership asks of the log in which groups live."""

    def group(self, group_id: str) -> AnyGroup | None:
        """The group as the log has it now; None where there is none."""

    def written(self, group_id: str) -> GroupView:
        """All that the log says of a group now."""

    def decide(self, group_id: str, rule: Callable[[GroupView], Decision[R]]) -> R:
        """Write what the rule decides about the group at the head of the log, atomically; its errors pass through.

        The rule may be called more than once.
        """


# The partitions that topics have now; topics that don't exist are left out.
PartitionCounts = Callable[[Iterable[str]], Mapping[str, int]]


# What assignors need of topics; None for one that is not there.
AssignableTopics = Callable[[Iterable[str]], Topics]


def no_assignable_topics(names: Iterable[str]) -> Topics:
    """What a member has that takes part in no group of the type consumer: of no topic is known what assignors need."""
    return dict.fromkeys(names)


def is_cooperative(strategies: Iterable[str]) -> bool:
    """Whether a member with these assignors keeps reading in a rebalance what it does not have to give up."""
    return all(name == COOPERATIVE for name in strategies)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """A consumer's part in a group; names, units and defaults are those of its configuration.

    `strategies`: assignors by preference. The member rebalances cooperatively when all of them are
    `cooperative-sticky`, else eagerly. Raises InvalidGroupError, InvalidConfigError.
    """

    group_id: str
    client_id: str = "tidelog"
    host: str = ""
    instance_id: str | None = None
    strategies: tuple[str, ...] = ("range", "roundrobin")
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000

    def __post_init__(self) -> None:
        check_group_id(self.group_id)
        unknown = [name for name in self.strategies if name not in ASSIGNORS]
        if unknown or not self.strategies:
            raise InvalidConfigError(
                f"`partition.assignment.strategy` {', '.join(self.strategies)!r} names no assignor, or an unknown one: "
                f"members of a group share one of Kafka's. Give some of {', '.join(ASSIGNORS)}."
            )
        if not 0 < 2 * self.heartbeat_interval_ms <= self.session_timeout_ms:
            raise InvalidConfigError(
                f"`heartbeat.interval.ms` {self.heartbeat_interval_ms} does not fit `session.timeout.ms` "
                f"{self.session_timeout_ms}: a member must give two heartbeats in a session, else one late one "
                "evicts it. Give a third of the session or less."
            )
        if self.instance_id == "":
            raise InvalidConfigError(
                "`group.instance.id` is empty: a static member has a name. Give one, or leave it out."
            )

    @property
    def cooperative(self) -> bool:
        """Whether the member keeps reading in a rebalance what it does not have to give up."""
        return is_cooperative(self.strategies)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernConfig:
    """A consumer's part in a group of the type consumer (KIP-848); names and units are those of its configuration.

    `assignor`: the one that it asks for; None: whatever the group has. Raises InvalidGroupError, InvalidConfigError.
    """

    group_id: str
    client_id: str = "tidelog"
    host: str = ""
    instance_id: str | None = None
    assignor: str | None = None
    max_poll_interval_ms: int = 300_000

    def __post_init__(self) -> None:
        check_group_id(self.group_id)
        if self.assignor is not None and self.assignor not in SERVER_ASSIGNORS:
            raise InvalidConfigError(
                f"`group.remote.assignor` {self.assignor!r} is no assignor: give one of {', '.join(SERVER_ASSIGNORS)},"
                " or leave it out."
            )
        if self.instance_id == "":
            raise InvalidConfigError(
                "`group.instance.id` is empty: a static member has a name. Give one, or leave it out."
            )


@dataclass(frozen=True, slots=True)
class Revoke:
    """These partitions go to others: finish with them, commit, and call `revoked()`. Until then no member gets them."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A rebalance is over: `partitions` are new, `owned` are all; either may be empty."""

    partitions: frozenset[TopicPartition]
    owned: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lost:
    """The group went on without this member, and these partitions may be others' already; `error` says why.

    A commit would be refused. It makes a `Revoke` void that was not answered yet. The member joins again by itself.
    """

    partitions: frozenset[TopicPartition]
    error: TidelogError


@dataclass(frozen=True, slots=True)
class Failed:
    """The member can't be in the group. `fatal`: it has given up; else it goes on trying."""

    error: TidelogError
    fatal: bool


Event = Revoke | Assigned | Lost | Failed

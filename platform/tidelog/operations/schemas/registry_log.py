"""The registry's log: decisions over the state at its head, of any number of registries over one lake."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from tidelog.log.compacted_topic import CompactedTopic, Rows, TopicOwner
from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.log.lake import Lake
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.reading import prepare
from tidelog.operations.schemas.records import RegistryRecord, read
from tidelog.schemas.base.model import Schema

R = TypeVar("R")

_OWNER: Final = TopicOwner("the registry", "a registry's log", "schemas would be deleted by their age")

# A decision: its response, and the records that make it so.
Decide = Callable[[RegistryState], tuple[R, Sequence[RegistryRecord]]]


class RegistryLog:
    """The registry's state in one lake. All methods may be called from many threads.

    No registry leads: a decision's records are appended only if the topic ends where it was read, and otherwise the
    decision is made again on what others have appended. The topic is made by the first record.
    """

    def __init__(self, lake: Lake, topic: str = SCHEMAS_TOPIC) -> None:
        self._lake = lake
        self._topic = CompactedTopic(lake, topic, 1, _RegistryFold, _OWNER, ordered=True)

    @property
    def uri(self) -> str:
        """The lake's address."""
        return self._lake.uri

    @property
    def most_bytes(self) -> int:
        """The largest record that can be stored, in bytes."""
        return self._topic.config().max_message_bytes

    def look(self, at: Callable[[RegistryState], R]) -> R:
        """The result of `at` for the state at the head of the log. It must not change the state, nor keep it."""
        return self._topic.look(lambda fold: at(fold.state))

    def known(self, at: Callable[[RegistryState], R]) -> R:
        """The same for the state as of the last look: for what never changes once it is there, as a schema's id.

        It does not wait for a decision that another thread makes.
        """
        return self._topic.known(lambda fold: at(fold.state))

    def of_id(self, number: int, context: str, at: Callable[[RegistryState], R]) -> R:
        """The same for what an id names: as `known` where that is known, for it never changes, else as `look`."""
        there = self.known(lambda state: state.by_id(number, context) is not None)
        return self.known(at) if there else self.look(at)

    def prepare(self, subject: str, schema: Schema) -> None:
        """Read a schema ahead of a decision about a subject, or of a look, which then finds it read."""
        self.known(lambda state: prepare(state, subject, schema))()

    def decide(self, rule: Decide[R]) -> R:
        """Append the records that the pure `rule` chooses, and return its response once they survive a power loss.

        The rule may refuse by raising; it is made again whenever others were faster. Raises `OutcomeUnknownError` when
        the store stops answering: the records may be there; decide again, and see.
        """

        def rows(fold: _RegistryFold) -> tuple[R, Rows]:
            response, records = rule(fold.state)
            return response, fold.rows(records)

        return self._topic.decide(rows)


class _RegistryFold:
    """The registry's state, and the keys under which other registries have written what it says."""

    def __init__(self) -> None:
        self.state = RegistryState()
        # {what a record is about: keys that say so in another registry's form}. Compaction goes by a key's bytes: an
        # older record under another form would come back once the newer one's tombstone is gone.
        self._foreign: dict[tuple[str, str | None, int], set[bytes]] = {}

    def take(self, key: bytes | None, value: bytes | None, offset: int, at_ms: int) -> None:  # noqa: ARG002
        """Take the next record. What is none of a registry's is passed over."""
        record = read(key, value, at_ms)
        if record is None or key is None:
            return
        if key != record.key():
            forms = self._foreign.setdefault(_about(record), set())
            (forms.discard if value is None else forms.add)(key)
        self.state.take([record])

    def rows(self, records: Sequence[RegistryRecord]) -> Rows:
        """Records as rows, each after tombstones of what says the same in other forms."""
        rows: list[tuple[bytes, bytes | None]] = []
        for record in records:
            rows += [(form, None) for form in sorted(self._foreign.get(_about(record), ()))]
            rows.append((record.key(), record.payload()))
        return rows


def _about(record: RegistryRecord) -> tuple[str, str | None, int]:
    return record.kind, record.subject, record.version

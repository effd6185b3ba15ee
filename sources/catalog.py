"""What a query sees of its lake: which topics there are, their offsets, their segments."""

from collections.abc import Iterable, Mapping

from tidelog.log.clock import Clock
from tidelog.log.errors import UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.log.names import is_internal
from tidelog.log.state import Segment, TopicState
from tidelog.sources.limits import Limit, bind, resolve, times_wanted
from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.planning import Bounds
from tidelog.sources.strategy import Strategy, Subscribe, SubscribePattern, partitions_of, topics_of

# How often a pattern looks for new topics: that lists the lake, which a trigger must not do each time.
DISCOVERY_INTERVAL_MS = 1_000


class Catalog:
    """The topics of a lake that a strategy reads, as of the last `refresh`."""

    def __init__(self, lake: Lake, strategy: Strategy, clock: Clock | None = None) -> None:
        self._lake = lake
        self._clock = clock or lake.clock
        self._strategy = strategy
        self._states: dict[str, TopicState] = {}
        self._names: list[str] = []
        self._listed_s = float("-inf")

    def refresh(self, *, required: bool = False) -> None:
        """Look again. With `required` a topic that the strategy names must be there (`UnknownTopicError`)."""
        states = {name: self._lake.peek(name) for name in self._candidates() if not is_internal(name)}
        self._states = {name: state for name, state in states.items() if state is not None}
        missing = sorted(set(states) - set(self._states))
        if required and missing and isinstance(self._strategy, Subscribe):
            raise UnknownTopicError(
                f"Topic '{missing[0]}' does not exist in the lake {self._lake.uri}: a query subscribes to topics that"
                " are there. Create it, correct option 'subscribe', or use 'subscribePattern' to wait for topics."
            )

    def _candidates(self) -> list[str]:
        if not isinstance(self._strategy, SubscribePattern):
            return topics_of(self._strategy, {})
        now_s = self._clock.elapsed_s()
        if now_s - self._listed_s >= DISCOVERY_INTERVAL_MS / 1000:
            self._names, self._listed_s = self._lake.topics(), now_s
        return topics_of(self._strategy, dict.fromkeys(self._names, 1))

    def assigned(self) -> frozenset[TopicPartition]:
        """The partitions that the strategy reads and that are there."""
        return partitions_of(self._strategy, {name: state.partitions for name, state in self._states.items()})

    def bounds(self) -> Bounds:
        """The log start and log end offset of every assigned partition."""
        return {
            tp: (self._states[tp.topic].start(tp.partition), self._states[tp.topic].end(tp.partition))
            for tp in self.assigned()
        }

    def ends(self) -> dict[TopicPartition, int]:
        """The log end offset of every assigned partition."""
        return {tp: end for tp, (_, end) in self.bounds().items()}

    def segments(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, list[Segment]]:
        """The live segments of partitions, by offset."""
        return {tp: self._states[tp.topic].live(tp.partition) for tp in partitions}

    def resolved(self, limit: Limit, position: str, *, streaming: bool) -> dict[TopicPartition, int]:
        """A limit as an offset for every assigned partition, -1 and -2 left for `bind`."""
        assigned = self.assigned()
        found: dict[TopicPartition, int | None] = {}
        for tp, ms in times_wanted(limit, assigned).items():
            found[tp] = self._lake.offsets_for_times(tp.topic, {tp.partition: ms})[tp.partition]
        return resolve(limit, assigned, found, "start" if position == "start" else "end", streaming=streaming)

    def bound(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Offsets with -1 and -2 replaced by what they mean now."""
        return bind(offsets, self.bounds())

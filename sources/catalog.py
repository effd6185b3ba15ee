"""What a query sees of its lake: which topics there are, their offsets, their segments."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from tidelog.cuts.cut_log import CutLog
from tidelog.cuts.model import Cut
from tidelog.cuts.rules import ends_of
from tidelog.log.base.errors import InvalidOptionError, NotATopicError, StorageUnavailableError, UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.log.rules import names
from tidelog.log.segments.fetch import find_by_time, plan_fetch
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.typed.facts import typing_of
from tidelog.log.typed.growth import grown
from tidelog.log.typed.value_typing import Typing
from tidelog.sources.limits import (
    AtCut,
    Limit,
    Position,
    among,
    at_cut,
    bind,
    check_resolved_order,
    resolve,
    times_wanted,
)
from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.options import SourceOptions
from tidelog.sources.planning import Bounds
from tidelog.sources.strategy import Assign, SubscribePattern, partitions_of, topics_of

# How often a pattern looks for new topics: that lists the lake, which a trigger must not do each time.
DISCOVERY_INTERVAL_S = 1.0

T = TypeVar("T")


class Catalog:
    """The topics of a lake that a query reads, as they were at the last `refresh`: all answers agree."""

    def __init__(self, lake: Lake, options: SourceOptions) -> None:
        self.lake = lake
        self._options = options
        self._strategy = options.strategy
        self._states: dict[str, TopicState] = {}
        self._names: list[str] = []
        self._listed_s = float("-inf")
        self._cuts: dict[str, Cut] = {}
        self._ends_in_cuts: dict[tuple[str, str, str], Mapping[TopicPartition, int]] = {}

    def refresh(self, *, required: bool = False) -> None:
        """Look again. With `required` the topics that the query names must be there, else `UnknownTopicError`.

        Of partitions that a query assigns it reads those that are there, as Kafka's source does.
        """
        states = {name: self._patiently(self._look, name) for name in self._candidates()}
        self._states = {name: state for name, state in states.items() if state is not None}
        missing = sorted(set(states) - set(self._states))
        if missing and required and not isinstance(self._strategy, SubscribePattern):
            option = "assign" if isinstance(self._strategy, Assign) else "subscribe"
            raise UnknownTopicError(
                f"Topic '{missing[0]}' does not exist in the lake {self.lake.uri}: a query subscribes to topics that"
                f" are there. Create it, correct option '{option}', or use 'subscribePattern' to wait for topics."
            )

    def _candidates(self) -> list[str]:
        """The topics to look for. Internal ones are left out, as in Kafka's source."""
        if isinstance(self._strategy, SubscribePattern):
            self._list()
            return topics_of(self._strategy, dict.fromkeys(self._names, 1))
        wanted = topics_of(self._strategy, {})
        for name in wanted:
            names.validate(name)
        return [name for name in wanted if not names.is_internal(name)]

    def _list(self) -> None:
        now_s = self.lake.clock.elapsed_s()
        if now_s - self._listed_s >= DISCOVERY_INTERVAL_S:
            found = self._patiently(self.lake.storage.list_folders, "")
            self._names = [n for n in found if not names.is_internal(n) and not names.why_invalid(n)]
            self._listed_s = now_s

    def _look(self, name: str) -> TopicState | None:
        """The topic's state as a copy that stays as it is; None when there is no such topic."""
        try:
            state = self.lake.peek(name)
        except NotATopicError:
            if isinstance(self._strategy, SubscribePattern):
                return None  # another table, which the pattern happens to match
            raise
        if state is None:
            return None
        return replace(state, segments=dict(state.segments), ends=dict(state.ends), starts=dict(state.starts))

    def _patiently(self, ask: Callable[[str], T], name: str) -> T:
        """The answer of a store that may be unavailable for a while (`fetchOffset.numRetries`)."""
        for _ in range(self._options.fetch_attempts - 1):
            try:
                return ask(name)
            except StorageUnavailableError:
                self.lake.clock.sleep(self._options.fetch_retry_interval_ms / 1000)
        return ask(name)

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

    def stream_ends(self, begun: Mapping[TopicPartition, int] | None = None) -> dict[TopicPartition, int]:
        """How far a stream that is at `begun` may read now: to the ends, or to those of the cut that it ends at."""
        if not isinstance(self._options.ending, AtCut):
            return self.ends()
        ends = at_cut(self._cut_ends(self._options.ending.name), self.bounds())
        return {tp: max(end, (begun or {}).get(tp, end)) for tp, end in ends.items()}

    def _cut_ends(self, name: str) -> dict[TopicPartition, int]:
        """Where the topics ended in a cut; one that the cut has not is not there. Raises `UnknownCutError`.

        Raises `CutLostError` for a topic that was created again since.
        """
        cut = self._cuts.get(name)
        if cut is None:
            cut = self._cuts[name] = CutLog(self.lake).get(name)
        ends: dict[TopicPartition, int] = {}
        for topic, state in self._states.items():
            if cut.topic(topic) is None:
                continue
            of_topic = self._ends_in_cuts.get((name, topic, state.topic_id))
            if of_topic is None:
                of_topic = {TopicPartition(topic, p): end for p, end in ends_of(cut, topic, state.topic_id).items()}
                self._ends_in_cuts[name, topic, state.topic_id] = of_topic
            ends |= of_topic
        return ends

    def segments(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, Sequence[Segment]]:
        """The live segments of partitions, by offset."""
        return {tp: self._states[tp.topic].live(tp.partition) for tp in partitions}

    def typings(self) -> dict[str, Typing | None]:
        """What is known of the values of each topic, None for plain ones."""
        return {name: typing_of(state.metadata) for name, state in self._states.items()}

    def columns(self) -> pa.StructType:
        """The columns of the topics' values, those of all where a query reads several.

        Raises `InvalidOptionError` for a topic that has none, and for topics whose columns don't go together.
        """
        columns: pa.StructType | None = None
        for name, typing in sorted(self.typings().items()):
            own = None if typing is None else typing.columns
            if own is None:
                raise InvalidOptionError(
                    f"Topic '{name}' has no columns: it knows no schema of its values (yet). Leave option 'columns'"
                    " out, or set the topic's value.columns, and append a value that has a schema."
                )
            union = grown(columns, own)
            if union.left_out:
                path, why = next(iter(union.left_out.items()))
                raise InvalidOptionError(
                    f"The columns of topic '{name}' don't go with those of the query's other topics: '{path}', {why}."
                    " Read the topic in a query of its own."
                )
            columns = union.columns
        if columns is None:
            raise InvalidOptionError("The query reads no topic (yet), so that nothing says what 'columns' has.")
        return columns

    def batch_limits(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Where a batch query starts and ends now. Raises `InvalidOptionError`."""
        starts = self.resolved(self._options.starting, "start", streaming=False)
        ends = self.resolved(self._options.ending, "end", streaming=False)
        check_resolved_order(starts, ends)
        return starts, ends

    def resolved(
        self, limit: Limit, position: Position, *, streaming: bool, of: Set[TopicPartition] | None = None
    ) -> dict[TopicPartition, int]:
        """A limit as an offset for every assigned partition, -1 and -2 replaced by what they mean now.

        `of`: only for those of these partitions that are there, as if the limit had been given for them alone.
        """
        assigned = self.assigned()
        if isinstance(limit, AtCut):
            offsets = at_cut(self._cut_ends(limit.name), self.bounds())
            return {tp: offset for tp, offset in offsets.items() if of is None or tp in of}
        if of is not None:
            assigned &= of
            limit = among(limit, assigned)
        by_time = {}
        for tp, ms in times_wanted(limit, assigned).items():
            plan = plan_fetch(self._states[tp.topic], tp.topic, tp.partition, None, None)
            by_time[tp] = find_by_time(self.lake.storage, tp.topic, plan, ms)
        return bind(resolve(limit, assigned, by_time, position, streaming=streaming), self.bounds())

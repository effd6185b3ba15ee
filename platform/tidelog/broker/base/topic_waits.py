"""The requests that wait for records of one topic, each for some of its partitions."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from tidelog.log.state.topic_state import TopicState

Wake: TypeAlias = Callable[[], None]


class _Offsets(NamedTuple):
    """What requests wait for a change of: each partition's end, and its start."""

    topic_id: str
    ends: Mapping[int, int]
    starts: Mapping[int, int]


class TopicWaits:
    """What waits for one topic. For the loop's thread.

    A change wakes those that wait for the partitions that it is of: a topic that hundreds of consumers share may change
    hundreds of times in a second.
    """

    def __init__(self) -> None:
        self._partitions: dict[Wake, Collection[int] | None] = {}
        self._of: dict[int, dict[Wake, None]] = {}
        self._of_all: dict[Wake, None] = {}
        # The topic as it was when the last change was seen, or when the first of them began to wait.
        self._seen: _Offsets | None = None

    def __len__(self) -> int:
        return len(self._partitions)

    def add(self, wake: Wake, partitions: Collection[int] | None, state: TopicState | None) -> None:
        """Call `wake` at each change of these partitions, None: of any, until `forget`.

        `state`: what is known of the topic now.
        """
        if not self._partitions:
            self._seen = _offsets(state)
        self._partitions[wake] = partitions
        if partitions is None:
            self._of_all[wake] = None
        for partition in partitions or ():
            self._of.setdefault(partition, {})[wake] = None

    def forget(self, wake: Wake) -> None:
        """Call it no more."""
        self._of_all.pop(wake, None)
        for partition in set(self._partitions.pop(wake, None) or ()):
            del self._of[partition][wake]
            if not self._of[partition]:
                del self._of[partition]

    def ring(self, partitions: Iterable[int] | None = None) -> None:
        """These partitions have changed, None: all may have."""
        if partitions is None:
            woken = dict.fromkeys(self._partitions)
        else:
            woken = dict(self._of_all)
            for partition in partitions:
                woken |= self._of.get(partition, {})
        for wake in woken:
            wake()

    def look(self, state: TopicState | None) -> None:
        """The topic was looked at: wake those whose partitions are not as they were. None: it can't be had."""
        if not self._partitions:
            return
        before, now = self._seen, _offsets(state)
        self._seen = now
        if before is None or now is None or before.topic_id != now.topic_id:
            self.ring()
        elif before != now:
            self.ring([p for p in self._of if _at(before, p) != _at(now, p)])


def _offsets(state: TopicState | None) -> _Offsets | None:
    return None if state is None else _Offsets(state.topic_id, dict(state.ends), dict(state.starts))


def _at(offsets: _Offsets, partition: int) -> tuple[int | None, int | None]:
    return offsets.starts.get(partition), offsets.ends.get(partition)

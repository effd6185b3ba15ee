"""Which offsets of a topic were rewritten: what a reader remembers of them is not what the log holds by now.

An append adds records and a merge moves them. All else that takes segments out, or raises a log start offset, is a
rewrite: compaction, the erasure of keys, retention, deleted records, segments given up by a repair.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

# Rewrites that are kept, and ranges of one entry's partition: those are taken for one where there are more.
MOST_REWRITES: Final = 1024
_MOST_RANGES: Final = 64


class Rewrite(NamedTuple):
    """Entry `version` took records out of the offsets [first, end) of a partition."""

    version: int
    partition: int
    first: int
    end: int


class _CountedFile(Protocol):
    """A segment, as far as it counts here."""

    @property
    def base_offset(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def records(self) -> int | None: ...


class Rewrites:
    """The newest rewrites of a topic. For one thread that changes it, and any that read it.

    What was rewritten up to entry `known_since` is not known: what is older than that counts as rewritten.
    """

    def __init__(self) -> None:
        self.known_since = -1
        self._newest: deque[Rewrite] = deque()
        # The end of all that was ever rewritten, by partition: what begins there or later is as it was.
        self._reach: dict[int, int] = {}

    @property
    def version(self) -> int:
        """The newest entry that rewrote something, as far as is known."""
        newest = self._newest
        try:
            return newest[-1].version
        except IndexError:
            return self.known_since

    def restored(self, version: int) -> None:
        """The state is that of a checkpoint of this version, and what came before is not known."""
        self.known_since, self._newest = version, deque()

    def add(self, rewrites: Iterable[Rewrite]) -> None:
        """Note the rewrites of the next entry."""
        new = tuple(rewrites)
        for one in new:
            self._reach[one.partition] = max(one.end, self._reach.get(one.partition, 0))
        kept = deque((*self._newest, *new))
        while len(kept) > MOST_REWRITES:
            self.known_since = kept.popleft().version
        while kept and kept[0].version <= self.known_since:  # an entry is known as a whole
            kept.popleft()
        self._newest = kept

    def since(self, version: int) -> Sequence[Rewrite] | None:
        """The rewrites after this version, oldest first; None where they are not known."""
        if version < self.known_since:
            return None
        rewrites = []
        for rewrite in reversed(self._newest):
            if rewrite.version <= version:
                break
            rewrites.append(rewrite)
        return rewrites[::-1]

    def touch(self, partition: int, first: int, end: int, version: int) -> bool:
        """Whether records of [first, end), as the log had them at a version, may be gone since."""
        if version < self.known_since:
            return True
        return first < self._reach.get(partition, 0) and _any(self.since(version) or (), partition, first, end)

    def touch_at_all(self, partition: int, first: int, end: int) -> bool:
        """Whether records were taken out of [first, end), as far as is known."""
        return first < self._reach.get(partition, 0) and _any(self._newest, partition, first, end)


def _any(rewrites: Iterable[Rewrite], partition: int, first: int, end: int) -> bool:
    return any(r.partition == partition and r.first < end and first < r.end for r in rewrites)


def rewrites_of(
    version: int, removed: Mapping[int, Sequence[_CountedFile]], added: Mapping[int, Sequence[_CountedFile]]
) -> Iterator[Rewrite]:
    """What an entry that took segments out rewrote, by partition.

    Segments that follow one another count together. Where others hold as many records in their place, all of them are
    there: a record is never changed.
    """
    for partition, gone in removed.items():
        new = sorted(added.get(partition, ()), key=lambda s: s.base_offset)
        ranges = [
            (first, end)
            for first, end, files in _runs(sorted(gone, key=lambda s: s.base_offset))
            if not _hold_the_same(files, [s for s in new if first <= s.base_offset < end])
        ]
        if len(ranges) > _MOST_RANGES:
            ranges = [(ranges[0][0], ranges[-1][1])]
        yield from (Rewrite(version, partition, first, end) for first, end in ranges)


def _runs(files: Sequence[_CountedFile]) -> Iterator[tuple[int, int, Sequence[_CountedFile]]]:
    """(first, end, files) of segments that lie side by side."""
    begin = 0
    for at in range(1, len(files) + 1):
        if at == len(files) or files[at].base_offset > files[at - 1].end:
            yield files[begin].base_offset, files[at - 1].end, files[begin:at]
            begin = at


def _hold_the_same(before: Sequence[_CountedFile], after: Sequence[_CountedFile]) -> bool:
    counts = [[s.records for s in files] for files in (before, after)]
    known = [[count for count in own if count is not None] for own in counts]
    return counts == known and sum(known[0]) == sum(known[1])

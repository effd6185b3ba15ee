"""How an answer is filled: partitions in turn, whole batches, within the limits of the request. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tidelog.broker.base.batch_runs import BatchRun, Found
from tidelog.broker.records.batches import shortened

# The chunk that covers an offset of a partition; None where it must be read first.
Find = Callable[[int], BatchRun | None]


@dataclass(slots=True)
class Wanted:
    """A partition to take batches of, from `offset` up to `end`, where there are some; `max_bytes` of them.

    What was taken: `batches`, of `size` bytes; `missing`: the offset at which a chunk would have been needed, which was
    not there; -1 for none. `behind`: the offset behind what was taken.
    """

    offset: int
    end: int
    max_bytes: int
    find: Find
    batches: list[bytes | memoryview] = field(default_factory=list)
    size: int = 0
    missing: int = -1
    behind: int = -1


def fill(partitions: Iterable[Wanted], max_bytes: int, taken: int = 0) -> int:
    """Take batches of partitions in this order; how many bytes they have in all, with those `taken` before.

    The first batch of all is taken even if it is larger than the limits (KIP-74), but of one that was made of segments
    no more than some of its records: a producer would have sent the others in other batches. A batch that holds a
    partition's offset is taken whole. None that overlaps the one before follows it: what was produced here and what was
    read from segments have other bounds, and clients skip only what is below the offset that they asked for.
    """
    total = taken
    for wanted in partitions:
        most = min(wanted.max_bytes, max_bytes - total)
        offset = wanted.offset
        while offset < wanted.end and (wanted.size < most or not total + wanted.size):
            chunk = wanted.find(offset)
            if chunk is None:
                wanted.missing = offset
                break
            run = chunk.read(offset, most - wanted.size, at_least_one=not total + wanted.size)
            if run.batches and run.size > most and chunk.version >= 0:
                run = _shortened(run, offset, most)
            if wanted.batches and run.batches and _base_offset(run.batches[0]) < offset:
                break
            wanted.batches += run.batches
            wanted.size += run.size
            if run.end == offset:  # the next batch does not fit
                break
            offset = run.end
        wanted.behind = offset
        total += wanted.size
    return total


def _shortened(first: Found, offset: int, most_bytes: int) -> Found:
    """A batch that is too large by itself, with as many of its records as there is room for, one at least."""
    short = shortened(first.batches[0], offset, most_bytes)
    return first if short is None else Found((short[1],), len(short[1]), short[0] + 1)


def _base_offset(batch: bytes | memoryview) -> int:
    return int.from_bytes(batch[:8])

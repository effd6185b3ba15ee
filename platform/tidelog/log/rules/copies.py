"""The rules of a copy: a partition that takes another log's records keeps their offsets, its gaps included."""

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.log.base.errors import CopyPositionError, NotACopyError
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Add, Txn
from tidelog.log.rules.appends import Ranges, check_purge_floor
from tidelog.log.rules.topics import Outcome, require_partition, require_topic
from tidelog.log.segments.writer import Staged, stats_json
from tidelog.log.state.topic_state import TopicState


@dataclass(frozen=True, slots=True)
class StagedRun:
    """Offsets [base, end) of a partition, as the other log has them, and the segment that holds their records.

    Offsets without a record are gaps there. `staged` is None for a run without a segment, which only a log that is
    empty from its start on is: `base` and `end` are that start. `first` and `last`: offsets of the first and the last
    record.
    """

    partition: int
    base: int
    end: int
    staged: Staged | None
    first: int = 0
    last: int = 0


def copied_to(state: TopicState, topic: str, partition: int) -> int | None:
    """The offset up to which a partition is a copy, which is its end; None for one that is new.

    Raises `NotACopyError` for a partition with records that no copy brought.
    """
    require_partition(state, topic, partition)
    end, copied = state.end(partition), state.txn(f"{layout.COPIED_PREFIX}{partition}")
    if copied is None and not end:
        return None
    if copied != end:
        what = "holds records of its own" if copied is None else f"was a copy up to offset {copied}, and got others"
        raise NotACopyError(
            f"Topic '{topic}', partition {partition} {what}: the records of another log would get other offsets here"
            " than they have there. Copy them to a topic that is not there yet: delete or leave this one, or copy"
            " into another lake."
        )
    return end


def decide_copy(
    state: TopicState, topic: str, topic_id: str, runs: Sequence[StagedRun], *, now_ms: int
) -> Outcome[Ranges]:
    """Append runs of another log, one for each partition; the response is {partition: (base, end)}.

    A run's base is the partition's end; that of a partition that is new is its log start offset from then on. Raises
    `NotACopyError`, and `CopyPositionError` when another process has copied meanwhile: look where the partition ends.
    """
    require_topic(state, topic, topic_id)
    modified_ms = max(now_ms, state.last_modification_ms)
    adds: list[Action] = []
    txns: list[Action] = []
    ranges: Ranges = {}
    for run in runs:
        p, at = run.partition, copied_to(state, topic, run.partition)
        if at is not None and at != run.base:
            raise CopyPositionError(
                f"Topic '{topic}', partition {p} ends at offset {at}, and records from {run.base} on were to be copied:"
                " another process copies, too. Stop one of the two."
            )
        if run.staged is not None:
            staged = run.staged
            stats = stats_json(
                staged.records,
                run.last - run.base,
                staged.min_timestamp_ms,
                staged.max_timestamp_ms,
                run.first - run.base,
            )
            adds.append(Add(staged.path, p, run.base, staged.size, modified_ms, True, stats, run.end))
        if at is None and run.base:
            txns.append(Txn(f"{layout.START_PREFIX}{p}", run.base))
        txns += [Txn(f"{layout.END_PREFIX}{p}", run.end), Txn(f"{layout.COPIED_PREFIX}{p}", run.end)]
        ranges[p] = (run.base, run.end)
    check_purge_floor(state, topic, [run.staged for run in runs if run.staged is not None])
    return Outcome((*adds, *txns), ranges, "WRITE", blind_append=True)

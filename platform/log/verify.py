"""Whether an entry may follow a state: each rule a named check, before `apply` changes anything.

An entry that breaks the format stops every reader and writer at it (`CorruptLogError` names it), because
whatever went on from there would give offsets twice or lose records. Other engines may delete and rewrite
rows; they may not append.
"""

from collections.abc import Iterator

from tidelog.log import layout
from tidelog.log.actions import Add, Entry, Metadata, Protocol, Remove, Txn
from tidelog.log.errors import CorruptLogError, UnsupportedFormatError
from tidelog.log.state import DELETED, FORMAT, TOPIC_ID, Segment, TopicState

FORMAT_VERSION = 1
READER_VERSION = 1
WRITER_VERSION = 2
IMPLEMENTED_PROPERTIES = frozenset(
    {
        "delta.enableExpiredLogCleanup",
        "delta.deletedFileRetentionDuration",
        "delta.logRetentionDuration",
        "delta.setTransactionRetentionDuration",
        "delta.checkpointInterval",
        "delta.dataSkippingNumIndexedCols",
        "delta.dataSkippingStatsColumns",
        "delta.targetFileSize",
        "delta.tuneFileSizesForRewrites",
        "delta.randomizeFilePrefixes",
        "delta.sampling.enabled",
        "delta.compatibility.symlinkFormatManifest.enabled",
    }
)


def verify_entry(state: TopicState, entry: Entry, topic: str) -> None:
    """Raise unless `entry` may follow `state`. `topic` is for messages."""
    for problem in _problems(state, entry):
        raise CorruptLogError(
            f"Topic '{topic}': log entry {entry.version} ({entry.info.operation or 'no operation'}) breaks the"
            f" format: {problem}. It was not written by tidelog, or not whole. Run 'tidelog check' to see what"
            " it holds.",
            version=entry.version,
        )
    for action in entry.actions:
        if isinstance(action, Metadata):
            verify_metadata(action, topic)
        elif isinstance(action, Protocol):
            verify_protocol(action, topic)


def verify_protocol(protocol: Protocol, topic: str) -> None:
    """Refuse a protocol version or feature that is not implemented, by name."""
    if protocol.reader > READER_VERSION or protocol.writer > WRITER_VERSION or protocol.features:
        features = f" with features {', '.join(protocol.features)}" if protocol.features else ""
        raise UnsupportedFormatError(
            f"Topic '{topic}' has Delta protocol (reader {protocol.reader}, writer {protocol.writer}){features};"
            f" this tidelog implements (reader {READER_VERSION}, writer {WRITER_VERSION}) without features."
            " Another engine upgraded the table: use a tidelog that knows it, or copy the topic to a new one."
        )


def verify_metadata(metadata: Metadata, topic: str) -> None:
    """Refuse a format version or a table property that is not implemented, by name."""
    configuration = metadata.configuration
    version = configuration.get(FORMAT, "")
    if version.isdigit() and int(version) > FORMAT_VERSION:
        raise UnsupportedFormatError(
            f"Topic '{topic}' has format version {version}; this tidelog knows versions up to {FORMAT_VERSION}."
            " Upgrade tidelog to read or write it."
        )
    unknown = sorted(k for k in configuration if k.startswith("delta.") and k not in IMPLEMENTED_PROPERTIES)
    if unknown:
        raise UnsupportedFormatError(
            f"Topic '{topic}' has table properties that this tidelog does not implement: {', '.join(unknown)}."
            " Unset them (ALTER TABLE ... UNSET TBLPROPERTIES), or use a tidelog that knows them."
        )


def _problems(state: TopicState, entry: Entry) -> Iterator[str]:
    adds = [a for a in entry.actions if isinstance(a, Add)]
    removes = [a for a in entry.actions if isinstance(a, Remove)]
    txns = [a for a in entry.actions if isinstance(a, Txn)]
    metadata = next((a for a in entry.actions if isinstance(a, Metadata)), None)
    if state.metadata is None and metadata is None:
        yield "the first entry has no metaData"
        return
    new_life = metadata is not None and metadata.configuration.get(TOPIC_ID, "") != state.topic_id
    ends = {int(t.app_id[len(layout.END_PREFIX) :]): t.version for t in txns if t.app_id.startswith(layout.END_PREFIX)}
    yield from _repeated(adds, txns)
    if new_life:
        yield from _new_life(state, adds, ends)
        return
    if metadata is not None and not metadata.configuration.get(TOPIC_ID):
        yield "its metaData has no tidelog.topic.id"
    if metadata is not None and metadata.configuration.get(DELETED) == "true":
        return
    appended = [a for a in adds if a.base_offset >= state.end(a.partition)]
    yield from _appends(state, appended, ends)
    if len(appended) < len(adds) or removes:
        yield from _rewrites(state, entry, [a for a in adds if a.base_offset < state.end(a.partition)], removes)
    yield from _starts(state, txns, ends)


def _repeated(adds: list[Add], txns: list[Txn]) -> Iterator[str]:
    if len({a.path for a in adds}) < len(adds):
        yield "it adds one file twice"
    if len({t.app_id for t in txns}) < len(txns):
        yield "it has one transaction id twice"


def _new_life(state: TopicState, adds: list[Add], ends: dict[int, int]) -> Iterator[str]:
    if adds:
        yield "it creates the topic and appends to it at once"
    for partition, end in sorted(state.ends.items()):
        if end and ends.get(partition) != 0:
            yield f"it creates the topic again but leaves partition {partition} to end at {end}"


def _appends(state: TopicState, adds: list[Add], ends: dict[int, int]) -> Iterator[str]:
    """Appended segments lie end to end from the log end offset, and the entry says the new end."""
    at: dict[int, int] = {}
    for add in adds:
        expected = at.get(add.partition, state.end(add.partition))
        if not 0 <= add.partition < state.partitions:
            yield f"it appends to partition {add.partition} of {state.partitions}"
        if add.base_offset != expected:
            yield (
                f"it appends to partition {add.partition} at offset {add.base_offset},"
                f" but the partition ends at {expected}"
            )
        if add.end is None or add.end <= add.base_offset:
            yield f"its segment {add.path} does not say (tag {layout.END_TAG}) which offsets it covers"
        else:
            at[add.partition] = add.end
    for partition in sorted(at.keys() | ends.keys()):
        old = state.end(partition)
        if ends.get(partition, old) != at.get(partition, old):
            yield (
                f"it sets the end of partition {partition} to {ends.get(partition, old)}, but its segments"
                f" end at {at.get(partition, old)}"
            )


def _rewrites(state: TopicState, entry: Entry, adds: list[Add], removes: list[Remove]) -> Iterator[str]:
    """What comes in covers what went out: range for range by tidelog, base for base by another engine."""
    gone = {r.path for r in removes}
    out = [s for s in _candidates(state, removes) if s.path in gone]
    if entry.info.request_id is None:
        bases = {(s.partition, s.base_offset) for s in out}
        for add in adds:
            if (add.partition, add.base_offset) not in bases:
                yield f"its file {add.path} replaces none of partition {add.partition} at {add.base_offset}"
        return
    starts = {
        int(t.app_id[len(layout.START_PREFIX) :]): t.version
        for t in entry.actions
        if isinstance(t, Txn) and t.app_id.startswith(layout.START_PREFIX)
    }
    for partition in sorted({a.partition for a in adds} | {s.partition for s in out}):
        covered = _union([(s.base_offset, s.end) for s in out if s.partition == partition])
        new = _union([(a.base_offset, a.end or 0) for a in adds if a.partition == partition])
        start = starts.get(partition, state.start(partition))
        if _above(new, start) != _above(covered, start):
            yield f"it replaces offsets {covered} of partition {partition} by {new}"


def _candidates(state: TopicState, removes: list[Remove]) -> Iterator[Segment]:
    touched = {r.partition for r in removes}
    for partition in sorted(state.segments if -1 in touched else touched):
        yield from state.live(partition)


def _union(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges merged where they touch: [(0, 5), (5, 9)] -> [(0, 9)]."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _above(ranges: list[tuple[int, int]], start: int) -> list[tuple[int, int]]:
    return [(max(low, start), high) for low, high in ranges if high > start]


def _starts(state: TopicState, txns: list[Txn], ends: dict[int, int]) -> Iterator[str]:
    for txn in txns:
        if not txn.app_id.startswith(layout.START_PREFIX):
            continue
        partition = int(txn.app_id[len(layout.START_PREFIX) :])
        if txn.version < state.start(partition):
            yield f"it moves the start of partition {partition} back to {txn.version}"
        if txn.version > ends.get(partition, state.end(partition)):
            yield f"it moves the start of partition {partition} past its end to {txn.version}"

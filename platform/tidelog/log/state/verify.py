"""Whether an entry may follow a state: each rule a named check, before `apply` changes anything.

An entry that breaks the format stops every reader and writer at it (`CorruptLogError` names it), because
whatever went on from there would give offsets twice or lose records. Only tidelog writes to its tables.
"""

from collections.abc import Iterable, Iterator

import orjson

from tidelog.log.base.errors import CorruptLogError, UnsupportedFormatError
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, Entry, Metadata, Protocol, Remove, Txn
from tidelog.log.delta.disk_format import (
    FORMAT_VERSION,
    PROTOCOL,
    TYPED_FORMAT_VERSION,
    described,
    other_format,
)
from tidelog.log.delta.table_schema import TOPIC, TableShape, growth_problems, schema_problems, topic_shape
from tidelog.log.delta.written_schemas import parse_written_schemas
from tidelog.log.state import foreign_entries
from tidelog.log.state.producer_memory import parse_app_id
from tidelog.log.state.topic_state import (
    DELETED,
    FORMAT,
    PARTITIONS,
    ROWS,
    TOPIC_ID,
    VALUE_DERIVED,
    VALUE_SCHEMAS,
    Segment,
    TopicState,
)

_OFFSET_PREFIXES = (layout.END_PREFIX, layout.START_PREFIX, layout.CLEAN_PREFIX)
# Delta's properties that tidelog gives a table (`tidelog.log.door.topic_machine.table_properties`).
IMPLEMENTED_PROPERTIES = frozenset(
    {
        "delta.enableExpiredLogCleanup",
        "delta.logRetentionDuration",
        "delta.checkpointInterval",
        "delta.deletedFileRetentionDuration",
        "delta.setTransactionRetentionDuration",
    }
)


def verify_entry(state: TopicState, entry: Entry, topic: str) -> None:
    """Raise unless `entry` may follow `state`. `topic` is the topic's name.

    One that tidelog did not write changes nothing, and may follow; the head of the log is judged by
    `tidelog.log.state.foreign_entries`.
    """
    for metadata in (a for a in entry.actions if isinstance(a, Metadata)):
        verify_format(metadata, topic)
    for protocol in (a for a in entry.actions if isinstance(a, Protocol)):
        verify_protocol(protocol, topic)
    if entry.info.request_id is None:
        return
    for problem in foreign_entries.problems(state, entry) if state.foreign else _problems(state, entry, topic):
        raise CorruptLogError(
            f"Topic '{topic}': log entry {entry.version} ({entry.info.operation or 'no operation'}) breaks the"
            f" format: {problem}. It was not written by tidelog, or not whole. Run 'tidelog check' to see what"
            " it holds.",
            version=entry.version,
        )


def verify_protocol(protocol: Protocol, topic: str) -> None:
    """Refuse any protocol but that of tidelog's tables, by name."""
    if protocol != PROTOCOL:
        raise UnsupportedFormatError(
            f"Topic '{topic}' has Delta protocol ({described(protocol)}); every table of tidelog has"
            f" ({described(PROTOCOL)}), so that other engines read it and don't write to it. Use a tidelog that knows"
            " this protocol, or copy the table's rows to a topic (a Spark batch with format('tidelog'))."
        )


def verify_format(metadata: Metadata, topic: str) -> None:
    """Refuse another format version: what comes after it may mean anything."""
    version = metadata.configuration.get(FORMAT, "")
    taken = (FORMAT_VERSION,) if ROWS in metadata.configuration else (FORMAT_VERSION, TYPED_FORMAT_VERSION)
    if _is_number(version) and int(version) not in taken:
        raise UnsupportedFormatError(" ".join(other_format(f"Topic '{topic}'", int(version), taken)))


def verify_table(metadata: Metadata, topic: str, shape: TableShape = TOPIC) -> None:
    """Refuse table properties and a schema that are not implemented, by name.

    They are judged at the head of the log, so that a tidelog that knows them can take them back. `shape`: of a table of
    rows; a topic's follows from its format.
    """
    unknown = sorted(k for k in metadata.configuration if k.startswith("delta.") and k not in IMPLEMENTED_PROPERTIES)
    if unknown:
        raise UnsupportedFormatError(
            f"Topic '{topic}' has table properties that this tidelog does not implement: {', '.join(unknown)}."
            " Use a tidelog that knows them, or restore the log folder from a copy."
        )
    if shape is TOPIC:
        shape = topic_shape(metadata.configuration.get(FORMAT, ""))
    problems = list(schema_problems(metadata.schema, metadata.partition_columns, shape))
    if problems:
        raise UnsupportedFormatError(
            f"Topic '{topic}' has a table whose schema this tidelog does not implement: {'; '.join(problems)}. Use a"
            " tidelog that knows it, or restore the log folder from a copy."
        )


def fact_problems(metadata: Metadata, topic: str) -> Iterator[str]:
    """What is wrong with the facts that a topic's metaData states."""
    facts = metadata.configuration
    if not facts.get(TOPIC_ID):
        yield f"its metaData has no {TOPIC_ID}"
    for fact in (FORMAT, PARTITIONS):
        if not _is_number(facts.get(fact, "")) or int(facts[fact]) < 1:
            yield f"its metaData has {fact} '{facts.get(fact, '')}', which is no number above 0"
    if metadata.name != topic:
        yield f"its metaData belongs to topic '{metadata.name}', so the folder was copied or renamed"
    if VALUE_SCHEMAS in facts:
        if not _is_typed(metadata):
            yield f"its metaData has {VALUE_SCHEMAS}, which only tables of format {TYPED_FORMAT_VERSION} have"
        try:
            parse_written_schemas(facts[VALUE_SCHEMAS])
        except ValueError as e:
            yield f"its metaData has a property {VALUE_SCHEMAS} that can't be read: {e}"
    if VALUE_DERIVED in facts and not (_is_typed(metadata) and facts[VALUE_DERIVED] == "true"):
        yield (
            f"its metaData has {VALUE_DERIVED} '{facts[VALUE_DERIVED]}', which is 'true' in tables of format"
            f" {TYPED_FORMAT_VERSION}, or absent"
        )


def _is_typed(metadata: Metadata) -> bool:
    return metadata.configuration.get(FORMAT) == str(TYPED_FORMAT_VERSION)


def _grown(old: Metadata, new: Metadata) -> Iterator[str]:
    """What of a typed topic's values the new metaData takes back: earlier rows would be read as others, or not at all.

    Both have facts that can be read.
    """
    if not _is_typed(old):
        return
    if not _is_typed(new):
        yield f"it makes a table of format {TYPED_FORMAT_VERSION} one of {new.configuration.get(FORMAT)}"
        return
    schemas = {one.id: one for one in parse_written_schemas(new.configuration.get(VALUE_SCHEMAS, "[]"))}
    for schema in parse_written_schemas(old.configuration.get(VALUE_SCHEMAS, "[]")):
        if schema.id not in schemas:
            yield f"it takes the schema {schema.id} of values away"
        elif schemas[schema.id].meaning != schema.meaning:
            yield f"it makes the schema {schema.id} of values another one"
    if VALUE_DERIVED in old.configuration and VALUE_DERIVED not in new.configuration:
        yield "it takes back that values may be derived of their columns"
    yield from growth_problems(old.schema, new.schema)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _problems(state: TopicState, entry: Entry, topic: str) -> Iterator[str]:
    adds = [a for a in entry.actions if isinstance(a, Add)]
    removes = [a for a in entry.actions if isinstance(a, Remove)]
    txns = [a for a in entry.actions if isinstance(a, Txn)]
    changes = [a for a in entry.actions if isinstance(a, Metadata)]
    metadata = changes[0] if changes else state.metadata
    if metadata is None:
        yield "the first entry has no metaData"
        return
    if len(changes) > 1:
        yield "it has two metaData"
    broken = list(fact_problems(metadata, topic)) if changes else []
    yield from broken
    yield from _repeated(adds, txns)
    yield from _live(state, adds, removes)
    yield from _own_ids(txns)
    ends = _offsets(txns, layout.END_PREFIX)
    starts = _offsets(txns, layout.START_PREFIX)
    cleans = _offsets(txns, layout.CLEAN_PREFIX)
    if metadata.configuration[TOPIC_ID] != state.topic_id:
        yield from _created_again(state, [*adds, *removes], ends, starts, cleans)
        return
    if not state.exists:
        if changes or adds or ends or starts or cleans:
            yield "it changes a deleted topic, which only a creation brings back"
        return
    if changes and not broken and state.metadata is not None:
        yield from _grown(state.metadata, metadata)
    if metadata.configuration.get(DELETED) == "true":
        yield from _deleted(state, adds, removes)
        return
    if int(metadata.configuration[PARTITIONS]) < state.partitions:
        yield f"it leaves {metadata.configuration[PARTITIONS]} of {state.partitions} partitions"
    appended = [a for a in adds if a.base_offset >= state.end(a.partition)]
    copied = _offsets([t for t in txns if t.version >= 0], layout.COPIED_PREFIX)
    yield from _appends(state, appended, ends, {p: starts.get(p, 0) for p in copied})
    yield from _copies(state, copied, ends)
    if appended and (removes or changes):
        yield "it appends, and changes more than that"
    if len(appended) < len(adds) or removes:
        others = [a for a in adds if a.base_offset < state.end(a.partition)]
        yield from _rewrites(state, others, removes, starts)
    yield from _starts(state, starts, ends)
    for partition, clean in cleans.items():
        if clean > ends.get(partition, state.end(partition)):
            yield f"it says that partition {partition} is compacted up to {clean}, past its end"


def _own_ids(txns: list[Txn]) -> Iterator[str]:
    for txn in txns:
        if txn.app_id.startswith(layout.PRODUCER_PREFIX) and (
            parse_app_id(txn.app_id) is None or txn.last_updated_ms is None
        ):
            yield f"its transaction id {txn.app_id} names no producer and partition, or has no time"
            return
        copied = txn.app_id.removeprefix(layout.COPIED_PREFIX)
        if copied != txn.app_id and layout.number(copied) is None:
            yield f"its transaction id {txn.app_id} names no partition"
            return
        for prefix in _OFFSET_PREFIXES:
            name = txn.app_id.removeprefix(prefix)
            if name != txn.app_id and (layout.number(name) is None or txn.version < 0):
                yield f"its transaction id {txn.app_id} ({txn.version}) names no partition, or no offset"
                return


def _offsets(txns: list[Txn], prefix: str) -> dict[int, int]:
    """{partition: offset} of the transaction ids under a prefix."""
    return {int(t.app_id[len(prefix) :]): t.version for t in txns if t.app_id.startswith(prefix)}


def _repeated(adds: list[Add], txns: list[Txn]) -> Iterator[str]:
    if len({a.path for a in adds}) < len(adds):
        yield "it adds one file twice"
    if len({t.app_id for t in txns}) < len(txns):
        yield "it has one transaction id twice"


def _live(state: TopicState, adds: list[Add], removes: list[Remove]) -> Iterator[str]:
    gone = {r.path for r in removes}
    for add in adds:
        if add.path not in gone and state.find(add.partition, add.path) is not None:
            yield f"it adds {add.path}, whose records are in the table already"


def _created_again(
    state: TopicState, files: list[Add | Remove], ends: dict[int, int], starts: dict[int, int], cleans: dict[int, int]
) -> Iterator[str]:
    if state.exists:
        yield "it creates the topic again, which was not deleted"
    if files:
        yield "it creates the topic, and changes its segments at once"
    for word, old, new in (("end", state.ends, ends), ("start", state.starts, starts), ("clean", state.cleans, cleans)):
        for partition in sorted(old.keys() | new.keys()):
            if new.get(partition, old.get(partition)) != 0:
                yield f"it creates the topic, but the {word} of partition {partition} is not 0"


def _deleted(state: TopicState, adds: list[Add], removes: list[Remove]) -> Iterator[str]:
    gone = {r.path for r in removes}
    if adds or any(s.path not in gone for s in state.all_segments()):
        yield "it deletes the topic, but not all of its segments"


def _appends(state: TopicState, adds: list[Add], ends: dict[int, int], copied: dict[int, int]) -> Iterator[str]:
    """Appended segments lie end to end from the log end offset, and the entry says the new end.

    `copied`: partitions that are copies of another log keep its offsets and its gaps, and begin where that one does.
    """
    at = {p: first for p, first in copied.items() if first and not state.end(p)}
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
            slots, records = add.end - add.base_offset, _records(add)
            gaps_allowed = add.partition in copied and records is not None and 0 <= records <= slots
            if records != slots and not gaps_allowed:
                yield f"its segment {add.path} covers {slots} offsets, but {_says(records)}"
    for partition in sorted(at.keys() | ends.keys()):
        old = state.end(partition)
        if ends.get(partition, old) != at.get(partition, old):
            yield (
                f"it sets the end of partition {partition} to {ends.get(partition, old)}, but its segments"
                f" end at {at.get(partition, old)}"
            )


def _copies(state: TopicState, copied: dict[int, int], ends: dict[int, int]) -> Iterator[str]:
    """A partition is a copy from its first record on, or not at all, and up to its end."""
    for partition, to in copied.items():
        end, before = state.end(partition), state.txn(f"{layout.COPIED_PREFIX}{partition}")
        if to != ends.get(partition, end):
            yield f"it says that partition {partition} is a copy up to {to}, which is not its end"
        if before != end and (before is not None or end):
            yield f"it copies to partition {partition}, which has records that are not of a copy"


def _records(add: Add) -> int | None:
    """How many records a segment's statistics say; None where they don't."""
    try:
        count = orjson.loads(add.stats or "{}")["numRecords"]
    except (ValueError, KeyError, TypeError):
        return None
    return count if isinstance(count, int) else None


def _says(records: int | None) -> str:
    return "does not say how many records it holds" if records is None else f"holds {records} records"


def _rewrites(state: TopicState, adds: list[Add], removes: list[Remove], starts: dict[int, int]) -> Iterator[str]:
    """What comes in covers what went out, range for range."""
    left = _by_partition((s.partition, s.base_offset, s.end) for s in _leaving(state, removes))
    came = _by_partition((a.partition, a.base_offset, a.end or 0) for a in adds)
    for partition in sorted(left.keys() | came.keys()):
        covered, ranges = _union(left.get(partition, [])), came.get(partition, [])
        new = _union(ranges)
        if any(not 0 <= base < end for base, end in ranges) or _length(ranges) != _length(new):
            yield f"its files of partition {partition} overlap, or don't say (tag {layout.END_TAG}) what they cover"
            continue
        start = starts.get(partition, state.start(partition))
        if _above(new, start) != _above(covered, start):
            yield f"it replaces offsets {covered} of partition {partition} by {new}"
    for add in adds:
        slots, records = (add.end or 0) - add.base_offset, _records(add)
        if records is None or not 0 <= records <= slots:
            yield f"its file {add.path} covers {slots} offsets, but {_says(records)}"


def _leaving(state: TopicState, removes: list[Remove]) -> Iterator[Segment]:
    """The live segments that an entry removes. Only where they should lie is looked at, when all are there."""
    of_partition: dict[int, dict[str, Remove]] = {}
    for remove in removes:
        of_partition.setdefault(remove.partition, {})[remove.path] = remove
    for partition, gone in sorted(of_partition.items()):
        offsets = [r.base_offset for r in gone.values()]
        near = [s for s in state.live_between(partition, min(offsets), max(offsets)) if s.path in gone]
        yield from near if len(near) == len(gone) else (s for s in state.live(partition) if s.path in gone)


def _by_partition(covers: Iterable[tuple[int, int, int]]) -> dict[int, list[tuple[int, int]]]:
    """{partition: [(base, end)]} of (partition, base, end)."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for partition, base, end in covers:
        ranges.setdefault(partition, []).append((base, end))
    return ranges


def _union(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges merged where they touch: [(0, 5), (5, 9)] -> [(0, 9)]."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _length(ranges: list[tuple[int, int]]) -> int:
    return sum(end - start for start, end in ranges)


def _above(ranges: list[tuple[int, int]], start: int) -> list[tuple[int, int]]:
    return [(max(low, start), high) for low, high in ranges if high > start]


def _starts(state: TopicState, starts: dict[int, int], ends: dict[int, int]) -> Iterator[str]:
    for partition, start in starts.items():
        if start < state.start(partition):
            yield f"it moves the start of partition {partition} back to {start}"
        if start > ends.get(partition, state.end(partition)):
            yield f"it moves the start of partition {partition} past its end to {start}"

"""`tidelog lake diff`: what differs between two lakes."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidelog.commands import views
from tidelog.commands.failures import FAILED
from tidelog.commands.options import Session
from tidelog.commands.terminal import print_json, say

if TYPE_CHECKING:
    from tidelog.operations.lake_diff.model import GroupDiff, LakeDiff, RecordDiff, TopicDiff

_LONGEST = 60


def diff(
    call: Session,
    a: Annotated[str, typer.Argument(metavar="A", help="A lake.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another lake, such as a branch of it.")],
    topic: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Compare this topic alone.")] = None,
    by_key: Annotated[
        bool,
        typer.Option(
            "--by-key", help="Compare the newest record of each key, as compaction leaves it, not each record."
        ),
    ] = False,
    show: Annotated[
        int, typer.Option("--show", min=0, max=100_000, help="How many differences of each topic to show.")
    ] = 10,
) -> None:
    """Show what differs between two lakes: topics, records or keys, groups, configurations. Exit code 1 if they differ.

    Files that both have are not read: a branch and its lake are compared at the cost of what was written since.
    """
    # Arrow and the log: heavy, and not needed for --help.
    from tidelog.log.lake import Lake
    from tidelog.operations.lake_diff.diff import diff as compared

    with (
        Lake(a, create=False, options=call.store) as ours,
        Lake(b, create=False, options=call.store) as theirs,
    ):
        lakes_diff = compared(ours, theirs, topic, by_key=by_key, shown=show)
    if call.as_json:
        print_json(as_json(lakes_diff))
    else:
        for line in lines(lakes_diff) if lakes_diff.differs else ["The two lakes hold the same."]:
            say(line)
    if lakes_diff.differs:
        raise typer.Exit(FAILED)


def lines(lakes_diff: "LakeDiff") -> Iterator[str]:
    """The differences in words."""
    yield f"A  {lakes_diff.a}"
    yield f"B  {lakes_diff.b}"
    yield from _configs("the lake", lakes_diff.config)
    for topic in lakes_diff.topics:
        if topic.differs:
            yield from _topic_lines(topic, "key" if lakes_diff.by_key else "record")
    for group in lakes_diff.groups:
        yield from _group_lines(group)


def _topic_lines(topic: "TopicDiff", noun: str) -> Iterator[str]:
    counted = [f"{where.value} {views.counted(n, noun)}" for where, n in sorted(topic.counts.items()) if n]
    said = [topic.where.value] if topic.where else [topic.note] if topic.note else []
    if topic.partitions[0] != topic.partitions[1] and not topic.where:
        said.append(f"{topic.partitions[0]} partitions in A, {topic.partitions[1]} in B")
    yield f"topic {topic.topic}: {', '.join([*said, *counted]) or 'its configuration differs'}"
    yield from (f"  {line}" for line in _configs("its configuration", topic.config))
    for one in topic.first:
        yield f"  {_place(one)}"
        yield from (f"    {side}  {_shown(record)}" for side, record in (("A", one.a), ("B", one.b)) if record)


def _place(one: "RecordDiff") -> str:
    offset = "" if one.offset is None else f", offset {one.offset}"
    return f"partition {one.partition}{offset}: {one.where.value}"


def _shown(record: Mapping[str, Any]) -> str:
    """A record on one line, its parts cut off where they are long."""
    headers = "".join(f" {h['key']}={_text(h['value'])}" for h in record.get("headers") or ())
    key = "" if record["key"] is None else f"{_short(record['key'])}  "
    return f"{key}{_short(record['value'])}{headers}"


def _short(value: bytes | None) -> str:
    text = _text(value) or "null"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _configs(what: str, config: Mapping[str, tuple[str | None, str | None]]) -> Iterator[str]:
    for key, (ours, theirs) in config.items():
        in_a, in_b = ("the default" if value is None else value for value in (ours, theirs))
        yield f"{what}: {key}: {in_a} in A, {in_b} in B"


def _group_lines(group: "GroupDiff") -> Iterator[str]:
    yield f"group {group.group}: {group.where.value}"
    for (topic, partition), (ours, theirs) in group.positions.items():
        at = ("none" if offset is None else str(offset) for offset in (ours, theirs))
        yield f"  {topic} {partition}: {' in A, '.join(at)} in B"


def as_json(lakes_diff: "LakeDiff") -> dict[str, Any]:
    """The differences as JSON: only what differs."""
    return {
        "a": lakes_diff.a,
        "b": lakes_diff.b,
        "differs": lakes_diff.differs,
        "config": _config_json(lakes_diff.config),
        "topics": [_topic_json(topic, by_key=lakes_diff.by_key) for topic in lakes_diff.topics if topic.differs],
        "groups": [
            {
                "group": group.group,
                "where": group.where.value,
                "positions": [
                    {"topic": topic, "partition": partition, "a": ours, "b": theirs}
                    for (topic, partition), (ours, theirs) in group.positions.items()
                ],
            }
            for group in lakes_diff.groups
        ],
    }


def _topic_json(topic: "TopicDiff", *, by_key: bool) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "where": topic.where.value if topic.where else None,
        "note": topic.note or None,
        "partitions": {"a": topic.partitions[0], "b": topic.partitions[1]},
        "keys" if by_key else "records": {where.value: n for where, n in sorted(topic.counts.items()) if n},
        "compared": topic.read,
        "config": _config_json(topic.config),
        "first": [
            {
                "where": one.where.value,
                "partition": one.partition,
                "offset": one.offset,
                "a": _record_json(one.a),
                "b": _record_json(one.b),
            }
            for one in topic.first
        ],
    }


def _config_json(config: Mapping[str, tuple[str | None, str | None]]) -> dict[str, Any]:
    return {key: {"a": ours, "b": theirs} for key, (ours, theirs) in config.items()}


def _record_json(record: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if record is None:
        return None
    headers = [{"key": header["key"], "value": _text(header["value"])} for header in record.get("headers") or ()]
    shown: dict[str, Any] = {"key": _text(record["key"]), "value": _text(record["value"]), "headers": headers}
    if record.get("timestamp") is not None:
        shown["timestamp_ms"] = int(record["timestamp"].timestamp() * 1000)
    return shown


def _text(value: bytes | None) -> str | None:
    """Bytes as text; those that are none as escapes, and so are characters that would move a terminal's cursor."""
    if value is None:
        return None
    text = value.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

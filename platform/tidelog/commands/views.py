"""How topics, lakes and their configurations are shown: as JSON documents, and as tables for people."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from tidelog.commands.failures import error_json
from tidelog.commands.terminal import in_words, number, size, table

if TYPE_CHECKING:
    from tidelog.log.base.errors import TidelogError
    from tidelog.log.config.overrides import KeyDescription
    from tidelog.log.state.descriptions import TopicDescription, TopicSummary
    from tidelog.log.typed.descriptions import ValuesDescription


def topic_json(topic: "TopicDescription") -> dict[str, Any]:
    """The description as it is, offsets and bytes exact."""
    return {
        "name": topic.name,
        "id": topic.id,
        "partitions": [asdict(p) for p in topic.partitions],
        "config": dict(topic.config),
    }


def values_json(values: "ValuesDescription | None") -> dict[str, Any]:
    """What a typed topic adds to its description; nothing for a plain one."""
    if values is None:
        return {}
    columns = [{"name": path, "type": kind} for path, kind in values.columns]
    schemas = [
        {
            "id": schema.id,
            "type": schema.kind.upper(),
            "subject": schema.subject,
            "version": schema.version,
            "derives": schema.derives,
            "left_out": dict(schema.left_out),
        }
        for schema in values.schemas
    ]
    return {"values": {"kind": values.kind, "newest": values.newest, "columns": columns, "schemas": schemas}}


def values(description: "ValuesDescription") -> RenderableType:
    """Tables of a typed topic's columns, its schemas, and what is no column and why; a sentence where it has none."""
    if not description.schemas:
        return Text("No columns yet: the topic knows no schema. They come with the first value that names one.")
    parts: list[RenderableType] = [table(["column", "type"], description.columns)]
    rows = []
    for schema in description.schemas:
        where = "value.schema" if schema.subject is None else f"{schema.subject}, version {schema.version}"
        notes = "newest" if schema.id == description.newest else ""
        rows.append((str(schema.id), schema.kind, where, "yes" if schema.derives else "no", Text(notes, "dim")))
    parts += [Text(), table([">schema", "kind", "found in", "derives bytes", ""], rows)]
    left_out = [
        (str(one.id), path or "(all of it)", Text(why, "dim"))
        for one in description.schemas
        for path, why in sorted(one.left_out.items())
    ]
    if left_out:
        parts += [Text(), table([">schema", "no column", "because"], left_out)]
    return Group(*parts)


def summary_json(name: str, topic: "TopicSummary | TidelogError") -> dict[str, Any]:
    """One topic in a list of topics; `offsets` is how many lie between start and end, over all partitions."""
    return {"name": name, "error": error_json(topic)} if isinstance(topic, Exception) else asdict(topic)


def summaries(topics: Mapping[str, "TopicSummary | TidelogError"]) -> RenderableType:
    """A table with a row for each topic; one that can't be opened is marked."""
    rows: list[Sequence[str | Text]] = []
    for name, topic in topics.items():
        if isinstance(topic, Exception):
            rows.append((name, Text("broken", "bold red"), "", "", ""))
        else:
            counts = (number(count) for count in (topic.partitions, topic.offsets, topic.segments))
            rows.append((name, *counts, size(topic.bytes)))
    return table(["topic", ">partitions", ">offsets", ">segments", ">size"], rows)


def headline(topic: "TopicDescription") -> Text:
    """The topic in one line."""
    return Text.assemble((topic.name, "bold"), f"  {extent(topic)}", (f"  id {topic.id}", "dim"))


def extent(topic: "TopicDescription") -> str:
    """How much there is of a topic, in words."""
    held = sum(p.bytes for p in topic.partitions)
    return f"{counted(len(topic.partitions), 'partition')}, {counted(_offsets(topic), 'offset')}, {size(held)}"


def partitions(topic: "TopicDescription") -> RenderableType:
    """A table with a row for each partition."""
    return table(
        [">partition", ">start", ">end", ">segments", ">size"],
        [
            (str(p.partition), number(p.start), number(p.end), number(p.segments), size(p.bytes))
            for p in topic.partitions
        ],
    )


def settings(config: Mapping[str, str]) -> RenderableType:
    """A table of what a configuration sets itself."""
    return table(
        ["configuration", "value", ""],
        [(name, value, Text(in_words(name, value), "dim")) for name, value in sorted(config.items())],
    )


def all_settings(rows: Iterable["KeyDescription"]) -> RenderableType:
    """A table of every key in force; those that were set stand out."""
    return table(
        ["configuration", "value", "", "set by", "meaning"],
        [
            (
                Text(row.name, "" if row.is_default else "bold"),
                Text(row.value, "" if row.is_default else "bold"),
                Text(in_words(row.name, row.value), "dim"),
                Text(row.source, "dim" if row.is_default else ""),
                Text(row.doc, "dim"),
            )
            for row in rows
        ],
    )


def settings_json(rows: Iterable["KeyDescription"]) -> list[dict[str, Any]]:
    """Every key in force: value, where it was set ("topic", "lake" or "default"), meaning."""
    return [{"name": r.name, "value": r.value, "source": r.source, "doc": r.doc} for r in rows]


def counted(count: int, thing: str) -> str:
    """`counted(1, "record")` -> "1 record"; 1200 -> "1,200 records"."""
    return f"{number(count)} {thing}{'' if count == 1 else 's'}"


def _offsets(topic: "TopicDescription") -> int:
    return sum(p.end - p.start for p in topic.partitions)

"""`tidelog topic …`: create, list, describe, alter, delete, delete-records."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tidelog.commands import views
from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError, each_topic, tell_broken
from tidelog.commands.options import Config, ConfigChanges, Session, pairs
from tidelog.commands.terminal import console, interactive, number, print_json, say, table

topics = family("Create, list, describe, change and delete topics.")

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.", show_default=False)]
_NO_SCHEMA_YET = (
    "Subject {} has no schema yet: the columns come with the first value that has one. Register it: tidelog schema"
    " register."
)
_DERIVED_FROM_NOW = (
    "Values may be derived of their columns from now on. Spark's views and DataFrames by read_topic that were made"
    " while the topic had no columns show those as null: make them again. So do engines that read the table itself."
)
_OFFSET = re.compile(r"([0-9]+):(-1|[0-9]+)")
_ENTRY_KEYS = {"topic", "partition", "offset"}


@command(
    topics, "create", example="tidelog topic create orders --partitions 8 --config retention.ms=604800000", changes=True
)
def create(
    call: Session,
    name: Name,
    config: Config,
    partitions: Annotated[
        int | None, typer.Option(metavar="N", help="How many; without it, the lake's num.partitions.")
    ] = None,
) -> None:
    """Create a topic, and the lake when it is not there yet."""
    wanted = pairs("--config", config)
    with call.open_lake(create=True) as opened:
        topic = opened.create_topic(name, partitions, wanted)
        values = opened.describe_values(name)
    if call.as_json:
        print_json(views.topic_json(topic) | views.values_json(values))
        return
    say(f"Created topic {name} with {views.counted(len(topic.partitions), 'partition')}, id {topic.id}.")
    if values is not None and values.schemas:
        console().print(views.values(values))
    elif values is not None:
        say(_NO_SCHEMA_YET.format(wanted["value.schema.subject"]))


@command(topics, "list", example="tidelog topic list --format json")
def list_topics(
    call: Session,
    internal: Annotated[bool, typer.Option("--internal", help="Show internal topics (__…), too.")] = False,
) -> None:
    """List topics. A pipe gets their names only, one a line.

    One that can't be opened is marked and reported on stderr, and the exit code is 1.
    """
    with call.open_lake() as opened:
        summaries = each_topic(opened.topics(internal=internal), opened.summarize_topic)
    out = console()
    if call.as_json:
        print_json([views.summary_json(name, topic) for name, topic in summaries.items()])
    elif not out.is_terminal:
        for name in summaries:
            say(name)
    elif summaries:
        out.print(views.summaries(summaries))
    else:
        say("No topics yet. Create one: tidelog topic create NAME --partitions 8")
    tell_broken(summaries, as_json=call.as_json)


@command(topics, "describe", example="tidelog topic describe orders --all")
def describe(
    call: Session,
    name: Name,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every configuration key in force, its source and its meaning.")
    ] = False,
) -> None:
    """Show a topic's id, configuration and partitions: offsets [start, end), segments, bytes."""
    with call.open_lake() as opened:
        topic, values = opened.describe_topic(name), opened.describe_values(name)
        rows = opened.topic_config(name).describe() if everything else []
    if call.as_json:
        settings = {"settings": views.settings_json(rows)} if everything else {}
        print_json(views.topic_json(topic) | views.values_json(values) | settings)
        return
    out = console()
    out.print(views.headline(topic))
    out.print()
    out.print(views.partitions(topic))
    if everything or topic.config:
        out.print()
        out.print(views.all_settings(rows) if everything else views.settings(topic.config))
    if values is not None:
        out.print()
        out.print(views.values(values))


@command(
    topics, "alter", example="tidelog topic alter orders --partitions 12 --delete-config retention.ms", changes=True
)
def alter(
    call: Session,
    name: Name,
    config: ConfigChanges,
    partitions: Annotated[
        int | None, typer.Option(metavar="N", help="The new number of partitions; it only grows.")
    ] = None,
) -> None:
    """Change a topic's configuration, and give it more partitions."""
    changes = config.by_key()
    if partitions is None and not changes:
        raise UsageProblemError("Nothing to change: give --partitions, --config or --delete-config.")
    with call.open_lake() as opened:
        topic = opened.alter_topic(name, partitions, changes)
    if call.as_json:
        print_json(views.topic_json(topic))
        return
    own = ", ".join(f"{k}={v}" for k, v in sorted(topic.config.items())) or "all defaults"
    say(f"Altered topic {name}: {views.counted(len(topic.partitions), 'partition')}; {own}.")
    if config.begins("value.bytes", "derive"):
        say(_DERIVED_FROM_NOW)


@command(topics, "delete", example="tidelog topic delete orders --yes", changes=True)
def delete(
    call: Session,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
) -> None:
    """Delete a topic and all its records. Asks first; without a terminal it needs --yes."""
    with call.open_lake() as opened:
        topic = opened.describe_topic(name)
        if not yes:
            _ask(f"{name} ({views.extent(topic)})")
        opened.delete_topic(name)
    if call.as_json:
        print_json({"deleted": name, "id": topic.id})
    else:
        say(f"Deleted topic {name}.")


def _ask(topic: str) -> None:
    if not interactive():
        raise UsageProblemError(
            "Nothing was deleted: without a terminal there is no way to ask whether to delete a topic and its records."
            " Add --yes."
        )
    if not typer.confirm(f"Delete topic {topic}?", err=True):
        say("Nothing was deleted.")
        raise typer.Exit(1)


@command(
    topics, "delete-records", example="tidelog topic delete-records orders --offset 0:1500 --offset 1:-1", changes=True
)
def delete_records(
    call: Session,
    name: Name,
    offset: Annotated[
        list[str],
        typer.Option(
            metavar="PARTITION:OFFSET",
            help="Delete the partition's records below this offset; -1: all of them. Repeatable.",
            default_factory=list,
            show_default=False,
        ),
    ],
    offset_json_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='As kafka-delete-records takes it: {"partitions": [{"topic", "partition", "offset"}], "version": 1}.',
        ),
    ] = None,
) -> None:
    """Delete the records before an offset, by partition. Prints where each partition starts now."""
    if bool(offset) == bool(offset_json_file):
        raise UsageProblemError("Say before which offsets to delete: with --offset, or with --offset-json-file.")
    before = offsets_from_file(offset_json_file, name) if offset_json_file else offsets_from_options(offset)
    with call.open_lake() as opened:
        starts = opened.delete_records(name, before)
    if call.as_json:
        print_json({"topic": name, "partitions": [{"partition": p, "start": s} for p, s in sorted(starts.items())]})
    else:
        console().print(table([">partition", ">start"], [(str(p), number(s)) for p, s in sorted(starts.items())]))


def offsets_from_options(texts: Sequence[str]) -> dict[int, int]:
    """`["0:1500", "1:-1"]` as {0: 1500, 1: -1}. Raises `typer.BadParameter`."""
    offsets: dict[int, int] = {}
    for text in texts:
        match = _OFFSET.fullmatch(text.strip())
        if match is None:
            raise typer.BadParameter(
                f"{text!r} is not of the form PARTITION:OFFSET, such as 0:1500, or 0:-1 for all records.",
                param_hint="--offset",
            )
        _put(offsets, int(match[1]), int(match[2]), "--offset")
    return offsets


def offsets_from_file(path: Path, topic: str) -> dict[int, int]:
    """The file's offsets by partition. Raises `typer.BadParameter`, also when it names another topic.

    Source: the JSON of `kafka-delete-records.sh --offset-json-file`.
    """
    option = "--offset-json-file"
    try:
        body = json.loads(path.read_bytes())
    except ValueError as e:
        raise typer.BadParameter(f"{path} is not JSON: {e}.", param_hint=option) from None
    entries = body.get("partitions") if isinstance(body, dict) else None
    if not isinstance(entries, list) or not entries:
        raise typer.BadParameter(
            f'{path} has no list "partitions"; it looks like {{"partitions": [{{"topic": "{topic}", "partition": 0,'
            ' "offset": 1500}], "version": 1}.',
            param_hint=option,
        )
    if body.get("version", 1) != 1:
        raise typer.BadParameter(f"{path} has version {body['version']!r}; only 1 is known.", param_hint=option)
    offsets: dict[int, int] = {}
    for entry in entries:
        _check_entry(entry, path, topic)
        _put(offsets, entry["partition"], entry["offset"], option)
    return offsets


def _check_entry(entry: Any, path: Path, topic: str) -> None:
    whole = isinstance(entry, dict) and entry.keys() == _ENTRY_KEYS
    if not whole or not all(type(entry[k]) is int for k in ("partition", "offset")):
        raise typer.BadParameter(
            f"{path} has the entry {json.dumps(entry)}; each needs topic, partition and offset, the last two as"
            " numbers.",
            param_hint="--offset-json-file",
        )
    if entry["topic"] != topic:
        raise typer.BadParameter(
            f"{path} names topic {entry['topic']!r}, but this deletes records of {topic!r}. Give each topic its own"
            " file.",
            param_hint="--offset-json-file",
        )


def _put(offsets: dict[int, int], partition: int, offset: int, option: str) -> None:
    if partition in offsets:
        raise typer.BadParameter(f"Partition {partition} is given twice.", param_hint=option)
    offsets[partition] = offset

"""`tidelog topic …`: create, list, describe, alter, delete, delete-records."""

from pathlib import Path
from typing import Annotated

import typer

from tidelog.cli.topic.broken_topics import each_topic, tell_broken
from tidelog.cli.topic.delete_records import offsets_from_file, offsets_from_options
from tidelog.commands import views
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import DebugOption, FormatOption, LakeOption, StoreOption, pairs, remember, session
from tidelog.commands.terminal import console, interactive, number, print_json, say, table

topics = typer.Typer(callback=remember, no_args_is_help=True, help="Create, list, describe, change and delete topics.")

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.", show_default=False)]
Config = Annotated[
    list[str],
    typer.Option(
        "--config",
        metavar="KEY=VALUE",
        help="Set a configuration key. Repeatable.",
        default_factory=list,
        show_default=False,
    ),
]


@topics.command("create", epilog="Example: tidelog topic create orders --partitions 8 --config retention.ms=604800000")
def create(
    context: typer.Context,
    name: Name,
    config: Config,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", metavar="N", help="How many; without it, the lake's num.partitions."),
    ] = None,
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """Create a topic, and the lake when it is not there yet."""
    call = session(context, lake, output, debug, store)
    wanted = pairs("--config", config)
    with call.open_lake(create=True) as opened:
        topic = opened.create_topic(name, partitions, wanted)
    if call.as_json:
        print_json(views.topic_json(topic))
    else:
        say(f"Created topic {name} with {views.counted(len(topic.partitions), 'partition')}, id {topic.id}.")


@topics.command("list", epilog="Example: tidelog topic list --format json")
def list_topics(
    context: typer.Context,
    internal: Annotated[bool, typer.Option("--internal", help="Show internal topics (__…), too.")] = False,
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """List topics. A pipe gets their names only, one a line.

    One that can't be opened is marked and told on stderr, and the exit code is 1.
    """
    call = session(context, lake, output, debug, store)
    with call.open_lake() as opened:
        found = each_topic(opened.topics(internal=internal), opened.summarize_topic)
    out = console()
    if call.as_json:
        print_json([views.summary_json(name, topic) for name, topic in found.items()])
    elif not out.is_terminal:
        for name in found:
            say(name)
    elif found:
        out.print(views.summaries(found))
    else:
        say("No topics yet. Create one: tidelog topic create NAME --partitions 8")
    tell_broken(found, as_json=call.as_json)


@topics.command("describe", epilog="Example: tidelog topic describe orders --all")
def describe(
    context: typer.Context,
    name: Name,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every configuration key in force, its source and its meaning.")
    ] = False,
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """Show a topic's id, configuration and partitions: offsets [start, end), segments, bytes."""
    call = session(context, lake, output, debug, store)
    with call.open_lake() as opened:
        topic = opened.describe_topic(name)
        rows = opened.topic_config(name).describe() if everything else []
    if call.as_json:
        print_json(views.topic_json(topic) | ({"settings": views.settings_json(rows)} if everything else {}))
        return
    out = console()
    out.print(views.headline(topic))
    out.print()
    out.print(views.partitions(topic))
    if everything or topic.config:
        out.print()
        out.print(views.all_settings(rows) if everything else views.settings(topic.config))


@topics.command("alter", epilog="Example: tidelog topic alter orders --partitions 12 --delete-config retention.ms")
def alter(
    context: typer.Context,
    name: Name,
    config: Config,
    delete_config: Annotated[
        list[str],
        typer.Option(
            "--delete-config",
            metavar="KEY",
            help="Reset a key to its default. Repeatable.",
            default_factory=list,
            show_default=False,
        ),
    ],
    partitions: Annotated[
        int | None, typer.Option("--partitions", metavar="N", help="The new number of partitions; it only grows.")
    ] = None,
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """Change a topic's configuration, and give it more partitions."""
    call = session(context, lake, output, debug, store)
    changes = changes_of(config, delete_config)
    if partitions is None and not changes:
        raise UsageProblemError("Nothing to change: give --partitions, --config or --delete-config.")
    with call.open_lake() as opened:
        topic = opened.alter_topic(name, partitions, changes)
    if call.as_json:
        print_json(views.topic_json(topic))
        return
    own = ", ".join(f"{k}={v}" for k, v in sorted(topic.config.items())) or "all defaults"
    say(f"Altered topic {name}: {views.counted(len(topic.partitions), 'partition')}; {own}.")


def changes_of(config: list[str], delete_config: list[str]) -> dict[str, str | None]:
    """`--config` and `--delete-config` as `Lake.alter_topic` takes them. Raises `UsageProblemError`."""
    changes: dict[str, str | None] = {**pairs("--config", config)}
    for key in delete_config:
        if key in changes and changes[key] is not None:
            raise UsageProblemError(f"{key} is both set and reset: give --config or --delete-config for it, not both.")
        changes[key] = None
    return changes


@topics.command("delete", epilog="Example: tidelog topic delete orders --yes")
def delete(
    context: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """Delete a topic and all its records. Asks first; without a terminal it needs --yes."""
    call = session(context, lake, output, debug, store)
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
            "Nothing was deleted: without a terminal nobody can be asked whether to delete a topic and its records."
            " Add --yes."
        )
    if not typer.confirm(f"Delete topic {topic}?", err=True):
        say("Nothing was deleted.")
        raise typer.Exit(1)


@topics.command("delete-records", epilog="Example: tidelog topic delete-records orders --offset 0:1500 --offset 1:-1")
def delete_records(
    context: typer.Context,
    name: Name,
    offset: Annotated[
        list[str],
        typer.Option(
            "--offset",
            metavar="PARTITION:OFFSET",
            help="Delete the partition's records below this offset; -1: all of them. Repeatable.",
            default_factory=list,
            show_default=False,
        ),
    ],
    offset_json_file: Annotated[
        Path | None,
        typer.Option(
            "--offset-json-file",
            metavar="FILE",
            help='As kafka-delete-records takes it: {"partitions": [{"topic", "partition", "offset"}], "version": 1}.',
        ),
    ] = None,
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """Delete the records before an offset, by partition. Prints where each partition starts now."""
    call = session(context, lake, output, debug, store)
    if bool(offset) == bool(offset_json_file):
        raise UsageProblemError("Say before which offsets to delete: with --offset, or with --offset-json-file.")
    before = offsets_from_file(offset_json_file, name) if offset_json_file else offsets_from_options(offset)
    with call.open_lake() as opened:
        starts = opened.delete_records(name, before)
    if call.as_json:
        print_json({"topic": name, "partitions": [{"partition": p, "start": s} for p, s in sorted(starts.items())]})
    else:
        console().print(table([">partition", ">start"], [(str(p), number(s)) for p, s in sorted(starts.items())]))

"""`tidelog group …`: list, describe, reset-offsets, delete, delete-offsets."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.group import options
from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, note, print_json, say

if TYPE_CHECKING:
    from tidelog.groups.store.group_log import GroupLog
    from tidelog.log.lake import Lake

groups = family("List, describe, reset and delete consumer groups and their offsets.")


@contextmanager
def _open(call: Session) -> "Iterator[tuple[Lake, GroupLog]]":
    """The lake that was named, and its groups."""
    # The log and the groups are heavy, and not needed for --help.
    from tidelog.groups.store.group_log import GroupLog

    with call.open_lake() as lake:
        yield lake, GroupLog(lake)


@command(groups, "list", example="tidelog group list --state Empty")
def list_groups(
    call: Session,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE,...",
            help="Only groups in these states: Empty, Stable, PreparingRebalance, CompletingRebalance.",
        ),
    ] = None,
) -> None:
    """List consumer groups. A pipe gets their names only, one a line."""
    from tidelog.admin import group_positions
    from tidelog.cli.group import views as group_views

    wanted = _states(state)
    with _open(call) as (opened, log):
        found = group_positions.groups_of(log.views())
        where = opened.uri
    found = [group for group in found if not wanted or group.phase.value.lower() in wanted]
    out = console()
    if call.as_json:
        print_json([group_views.state_json(group, where) for group in found])
    elif not out.is_terminal:
        for group in found:
            say(group.group_id)
    elif found:
        out.print(group_views.list_table(found))
    else:
        say("No groups. A group begins when its first consumer joins or commits.")


def _states(text: str | None) -> set[str]:
    from tidelog.groups.model import GroupPhase

    names = {name.strip().lower() for name in (text or "").split(",") if name.strip()}
    known = {phase.value.lower(): phase.value for phase in GroupPhase}
    unknown = sorted(names - known.keys())
    if unknown or (text is not None and not names):
        raise typer.BadParameter(
            f"{unknown[0] if unknown else text!r} is no state of a group: give {', '.join(known.values())}.",
            param_hint="--state",
        )
    return names


@command(groups, "describe", example="tidelog group describe billing --members --verbose")
def describe(
    call: Session,
    names: options.SomeGroups = None,
    every: options.AllGroups = False,
    members: Annotated[bool, typer.Option("--members", help="Show the members, not the offsets.")] = False,
    state: Annotated[bool, typer.Option("--state", help="Show the state, not the offsets.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="With --members: what each reads, too.")] = False,
) -> None:
    """Show groups' offsets, how far each is behind the log's end (LAG), and which member reads which partition."""
    if bool(names) == every:
        raise UsageProblemError("Say which groups to describe: name them, or give --all-groups.")
    if members and state:
        raise UsageProblemError("--members and --state show different things: give one of them.")
    if verbose and not members:
        raise UsageProblemError("--verbose says more about members: give --members too, or leave it out.")
    from tidelog.admin import group_positions
    from tidelog.cli.group import views as group_views

    with _open(call) as (opened, log):
        views = group_positions.views(log, None if every else dict.fromkeys(names or ()))
        found = group_positions.groups_of(views)
        rows = group_positions.positions(opened, views)
        where = opened.uri
    if call.as_json:
        shape = {
            group.group_id: group_views.state_json(group, where)
            | {"members": group_views.members_json(group), "partitions": group_views.offsets_json(rows[group.group_id])}
            for group in found
        }
        print_json(list(shape.values()))
        return
    out = console()
    if state:
        out.print(group_views.states_table(found, where))
        return
    for group in found:
        if not group.members:
            note(f"Consumer group '{group.group_id}' has no active members.")
    if members:
        out.print(group_views.members_table(found, verbose=verbose))
    else:
        out.print(group_views.offsets_table((name, row) for name in rows for row in rows[name]))


@command(
    groups, "reset-offsets", example="tidelog group reset-offsets billing --topic orders --to-earliest", changes=True
)
def reset_offsets(
    call: Session,
    name: options.GroupName,
    target: options.ResetTarget,
    topic: options.Topics = None,
    all_topics: options.AllTopics = False,
    execute: options.Execute = False,
    dry_run: options.DryRun = False,
    export: options.Export = False,
) -> None:
    """Set a group's committed offsets. Shows what would change; --execute changes it, if the group has no members.

    An offset outside a partition's range becomes the nearest one in it.
    """
    if execute and dry_run:
        raise UsageProblemError("--execute and --dry-run contradict one another: give one of them.")
    if export and call.as_json:
        raise UsageProblemError("--export prints CSV, but JSON is asked for: leave out one of them.")
    scope = options.scope_of(topic, all_topics)
    if scope is None and not all_topics and target.from_file is None:
        raise UsageProblemError("Say which offsets to reset: with --topic, or with --all-topics.")
    from tidelog.admin import group_positions
    from tidelog.cli.group import views as group_views
    from tidelog.operations.offset_resets import export_lines, plan_reset

    with _open(call) as (opened, log):
        scenario = target.scenario(name, opened.clock.now_ms())
        standings = group_positions.standings(opened, log, name, scope, scenario)
        if not standings:
            raise UsageProblemError(f"Group '{name}' has no committed offsets there. Name topics with --topic.")
        try:
            resets = plan_reset(scenario, standings)
        except ValueError as e:
            raise UsageProblemError(str(e)) from None
        if execute:
            group_positions.commit(opened, log, name, {place: reset.offset for place, reset in resets.items()})
    for (reset_topic, partition), reset in resets.items():
        if reset.note:
            note(f"{reset_topic} [{partition}] {reset.note}")
    if call.as_json:
        print_json(group_views.resets_json(name, resets, executed=execute))
    elif export:
        typer.echo(export_lines(name, [(place, reset.offset) for place, reset in resets.items()]), nl=False)
    else:
        console().print(group_views.resets_table(name, resets))
    if not execute:
        note("Nothing was changed: add --execute to do it.")


@command(groups, "delete", example="tidelog group delete billing", changes=True)
def delete(
    call: Session,
    names: options.GroupNames,
) -> None:
    """Delete groups without members, and their offsets."""
    from tidelog.admin import group_requests

    with _open(call) as (opened, log):
        for name in dict.fromkeys(names):
            group_requests.delete(opened, log, name)
            if not call.as_json:
                say(f"Deleted group {name}.")
    if call.as_json:
        print_json({"deleted": list(dict.fromkeys(names))})


@command(groups, "delete-offsets", example="tidelog group delete-offsets billing --topic orders:0,1", changes=True)
def delete_offsets(
    call: Session,
    name: options.GroupName,
    topic: options.Topics = None,
    all_topics: options.AllTopics = False,
) -> None:
    """Delete a group's committed offsets of topics that no member of it subscribes to."""
    scope = options.scope_of(topic, all_topics)
    if scope is None and not all_topics:
        raise UsageProblemError("Say which offsets to delete: with --topic, or with --all-topics.")
    from tidelog.admin import group_positions
    from tidelog.commands.terminal import table

    with _open(call) as (opened, log):
        answers = group_positions.delete_offsets(opened, log, name, scope)
    refused = [answer for answer in answers if answer.why]
    if call.as_json:
        print_json({"group": name, "partitions": [answer.document() for answer in answers]})
    else:
        rows = [(a.topic, str(a.partition), a.why or "deleted") for a in answers]
        console().print(table(["TOPIC", ">PARTITION", "STATUS"], rows))
    if refused:
        raise typer.Exit(1)

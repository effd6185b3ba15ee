"""`tidelog group …`: list, describe, alter, reset-offsets, delete, delete-offsets."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.group import options
from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import ConfigChanges, Session
from tidelog.commands.terminal import console, note, print_json, say
from tidelog.log.base.typed_values import listed

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
            help="Only groups in these states: Empty, Stable, PreparingRebalance, CompletingRebalance, Assigning,"
            " Reconciling, NotReady.",
        ),
    ] = None,
) -> None:
    """List consumer groups. A pipe gets their names only, one a line."""
    from tidelog.cli.group import views as group_views
    from tidelog.groups.model import Group

    wanted = _states(state)
    with _open(call) as (opened, log):
        group_list = [view.group or Group(name) for name, view in log.views().items()]
        where = opened.uri
    group_list = [group for group in group_list if not wanted or group.phase.value.lower() in wanted]
    out = console()
    if call.as_json:
        print_json([group_views.state_json(group, where) for group in group_list])
    elif not out.is_terminal:
        for group in group_list:
            say(group.group_id)
    elif group_list:
        out.print(group_views.list_table(group_list))
    else:
        say("No groups. A group begins when its first consumer joins or commits.")


def _states(text: str | None) -> set[str]:
    from tidelog.groups.model import GroupPhase

    names = {name.lower() for name in listed(text or "")}
    states = {phase.value.lower(): phase.value for phase in GroupPhase}
    unknown = sorted(names - states.keys())
    if unknown or (text is not None and not names):
        raise typer.BadParameter(
            f"{unknown[0] if unknown else text!r} is no state of a group: give {', '.join(states.values())}.",
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
    from tidelog.cli.group import views as group_views
    from tidelog.operations.groups import describe_group, read_groups, with_their_topics

    with _open(call) as (opened, log):
        snapshot = with_their_topics(opened, read_groups(opened, log, None if every else dict.fromkeys(names or ())))
        where = opened.uri
    descriptions = [describe_group(snapshot, name) for name in snapshot.groups]
    if call.as_json:
        print_json([group_views.description_json(description, where) for description in descriptions])
        return
    out = console()
    if state:
        out.print(group_views.states_table([description.group for description in descriptions], where))
        return
    for description in descriptions:
        if not description.members:
            note(f"Consumer group '{description.group.group_id}' has no active members.")
    if members:
        out.print(group_views.members_table(descriptions, verbose=verbose))
    else:
        out.print(group_views.offsets_table(descriptions))


@command(
    groups, "alter", example="tidelog group alter billing --config consumer.session.timeout.ms=60000", changes=True
)
def alter(
    call: Session,
    name: options.GroupName,
    config: ConfigChanges,
) -> None:
    """Change a group's configuration, which may be done before its first member joins.

    Keys: consumer.session.timeout.ms, consumer.heartbeat.interval.ms, streams.session.timeout.ms,
    streams.heartbeat.interval.ms, streams.initial.rebalance.delay.ms, streams.num.standby.replicas. Members of the
    protocol that a key is named after go by it at their next heartbeats.
    """
    changes = config.by_key()
    if not changes:
        raise UsageProblemError("Nothing to change: give --config or --delete-config.")
    from tidelog.operations.groups import configure_group

    with _open(call) as (_, log):
        changed = configure_group(log, name, changes)
    if call.as_json:
        print_json({"group": name, "config": changed.overrides})
        return
    own = ", ".join(f"{key}={value}" for key, value in changed.overrides.items()) or "all defaults"
    say(f"Altered group {name}: {own}.")


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
    if scope is None and not all_topics and target.from_file is None and target.to_cut is None:
        raise UsageProblemError("Say which offsets to reset: with --topic, or with --all-topics.")
    from tidelog.cli.group import views as group_views
    from tidelog.cuts.cut_log import CutLog
    from tidelog.groups.model import CommittedOffset
    from tidelog.operations.groups import set_offsets
    from tidelog.operations.offset_resets import plan_reset, reset_to_cut, standings

    with _open(call) as (opened, log):
        scenario = target.scenario(
            name, opened.clock.now_ms(), lambda cut: reset_to_cut(opened, log, CutLog(opened).get(cut), name, scope)
        )
        partitions = standings(opened, log, name, scope, scenario)
        if not partitions:
            raise UsageProblemError(f"Group '{name}' has no committed offsets there. Name topics with --topic.")
        try:
            resets = plan_reset(scenario, partitions)
        except ValueError as e:
            raise UsageProblemError(str(e)) from None
        if execute:
            set_offsets(opened, log, name, {place: CommittedOffset(reset.offset) for place, reset in resets.items()})
    for (reset_topic, partition), reset in resets.items():
        if reset.note:
            note(f"{reset_topic} [{partition}] {reset.note}")
    if call.as_json:
        print_json(group_views.resets_json(name, resets, executed=execute))
    elif export:
        typer.echo(options.export_lines(name, [(place, reset.offset) for place, reset in resets.items()]), nl=False)
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
    from tidelog.operations.groups import delete_group

    with _open(call) as (opened, log):
        for name in dict.fromkeys(names):
            delete_group(opened, log, name)
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
    from tidelog.cli.group import views as group_views
    from tidelog.operations.groups import delete_offsets as delete_of
    from tidelog.operations.groups import require_group

    with _open(call) as (opened, log):
        committed = require_group(log.view(name), name).offsets
        wanted = {place for place in committed if scope is None or (place[0] in scope and scope[place[0]] is None)}
        wanted |= {(topic, number) for topic, numbers in (scope or {}).items() for number in numbers or ()}
        refusals = delete_of(opened, log, name, sorted(wanted)) if wanted else {}
    if call.as_json:
        print_json({"group": name, "partitions": group_views.deletions_json(refusals)})
    else:
        console().print(group_views.deletions_table(refusals))
    if any(refusals.values()):
        raise typer.Exit(1)

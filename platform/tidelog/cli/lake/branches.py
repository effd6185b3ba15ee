"""`tidelog lake branch|branches`: lakes that share what another one held, and go their own way from there."""

from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.lake.commands import lakes
from tidelog.commands import views
from tidelog.commands.declare import command
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, moment, print_json, say, size, table

if TYPE_CHECKING:
    from tidelog.mirror.branch.discarding import DiscardReport
    from tidelog.mirror.branch.making import BranchReport


@command(lakes, "branch", example="tidelog lake branch lakes/main lakes/what-if --at friday")
def branch(
    call: Session,
    source: Annotated[
        str | None, typer.Argument(metavar="SOURCE", help="The lake to branch.", show_default=False)
    ] = None,
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="The branch's address, without a lake.", show_default=False)
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="CUT", help="As the source was at this cut; without it, as it is now.")
    ] = None,
    discard: Annotated[
        str | None,
        typer.Option("--discard", metavar="BRANCH", help="Delete a branch, whole or not, with all written there."),
    ] = None,
) -> None:
    """Make a lake that has what another one has, all topics, groups and transactions, without copying its records.

    Files are shared where both are on one disk, and copied inside an object store. Both sides write and clean up as
    they like. It may be killed and called again. With --discard, give a branch up.
    """
    if discard is not None:
        if source is not None or target is not None or at is not None:
            raise UsageProblemError("--discard takes the branch's address, and nothing beside it.")
        _say_discarded(call, _discard(call, discard))
        return
    if source is None or target is None:
        raise UsageProblemError("Give the lake to branch and the branch's address: tidelog lake branch SOURCE TARGET.")
    _say_made(call, _branch(call, source, target, at or ""))


def _branch(call: Session, source: str, target: str, cut: str) -> "BranchReport":
    # Arrow and the log: heavy, and not needed for --help.
    from tidelog.log.lake import Lake
    from tidelog.mirror.branch.making import make_branch

    with (
        Lake(source, create=False, options=call.store) as opened,
        Lake(target, create=None, options=call.store, may_change_follower=True) as branch,
    ):
        return make_branch(opened, branch, cut)


def _discard(call: Session, address: str) -> "DiscardReport":
    from tidelog.log.lake import Lake
    from tidelog.log.storage.opening import open_storage
    from tidelog.mirror.branch.discarding import discard_branch

    with Lake(address, create=False, options=call.store, may_change_follower=True) as branch:
        return discard_branch(branch, lambda uri: open_storage(uri, call.store))


def _say_made(call: Session, done: "BranchReport") -> None:
    if call.as_json:
        print_json(done.to_json())
        return
    cut = f" at the cut {done.cut}" if done.cut else ""
    say(
        f"{done.lake} is a branch of {done.of}{cut} after {done.took_ms / 1000:.1f} s:"
        f" {views.counted(done.tables, 'table')}, {views.counted(done.files, 'file')} of {size(done.bytes)}, of which"
        f" {size(done.copied_bytes)} passed this process."
    )


def _say_discarded(call: Session, done: "DiscardReport") -> None:
    if call.as_json:
        print_json(done.to_json())
        return
    say(f"{done.lake} is discarded, {views.counted(done.objects, 'object')}; {done.of} is as it was.")


@command(lakes, "branches", example="tidelog --lake lakes/main lake branches")
def branches(call: Session) -> None:
    """List the branches of a lake, and what became of each: whole, broken off, gone."""
    from tidelog.log.storage.opening import open_storage
    from tidelog.operations.branches import branches_of

    with call.open_lake() as lake:
        notes = branches_of(lake.storage, lambda uri: open_storage(uri, call.store))
        uri = lake.uri
    if call.as_json:
        print_json([note.to_json() for note in notes])
        return
    if not notes:
        say(f"{uri} has no branches.")
        return
    rows = [
        (
            note.lake,
            note.cut or "-",
            moment(note.time_ms),
            note.state.value,
        )
        for note in notes
    ]
    console().print(table(("branch", "cut", "as it was", "state"), rows))

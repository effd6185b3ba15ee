"""`tidelog cut …`: create, list, describe, delete."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from tidelog.commands import views
from tidelog.commands.declare import command, family
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, moment, number, print_json, say, size, table

if TYPE_CHECKING:
    from tidelog.cuts.model import Cut

cuts = family("Give points in time of a whole lake a name, to go back to, read up to, and branch from.")

CutName = Annotated[str, typer.Argument(metavar="NAME", help="The cut's name.", show_default=False)]


@command(cuts, "create", example="tidelog cut create friday", changes=True)
def create(
    call: Session,
    name: CutName,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Hold what the cut needs until it is deleted: versions of tables stay readable, and cost their space.",
        ),
    ] = False,
) -> None:
    """Name the lake as it is now: the ends of all topics, and how far every group is. Nothing is copied.

    Each transaction is in it as a whole or not at all. Records and versions expire as ever unless --keep is given.
    """
    from tidelog.operations.cuts import create_cut

    with call.open_lake() as opened:
        made = create_cut(opened, name, keep=keep)
    if call.as_json:
        print_json(cut_json(made))
    else:
        say(f"Made cut {name}: {_summary(made)}.")


@command(cuts, "list", example="tidelog cut list")
def list_cuts(call: Session) -> None:
    """List the cuts of a lake, the oldest first. A pipe gets the names only, one a line."""
    from tidelog.cuts.cut_log import CutLog

    with call.open_lake() as opened:
        shown = sorted(CutLog(opened).all().values(), key=lambda cut: (cut.time_ms, cut.name))
    out = console()
    if call.as_json:
        print_json([cut_json(cut, whole=False) for cut in shown])
    elif not out.is_terminal:
        for cut in shown:
            say(cut.name)
    elif shown:
        out.print(list_table(shown))
    else:
        say("No cuts. 'tidelog cut create NAME' makes one.")


@command(cuts, "describe", example="tidelog cut describe friday")
def describe(call: Session, name: CutName) -> None:
    """Show a cut: the version and the offsets of each topic, and how far each group was."""
    from tidelog.cuts.cut_log import CutLog
    from tidelog.operations.cuts import held_files

    with call.open_lake() as opened:
        cut = CutLog(opened).get(name)
        held = held_files(opened, [cut]).size if cut.kept else 0
    if call.as_json:
        print_json({**cut_json(cut), **({"held_bytes": held} if cut.kept else {})})
    else:
        console().print(description(cut, held))


@command(cuts, "delete", example="tidelog cut delete friday", changes=True)
def delete(call: Session, name: CutName) -> None:
    """Delete a cut, and let go of what it held. Records stay as they are."""
    from tidelog.operations.cuts import delete_cut

    with call.open_lake() as opened:
        gone = delete_cut(opened, name)
    if call.as_json:
        print_json({"deleted": gone.name})
    else:
        say(f"Deleted cut {name}.")


def _summary(cut: "Cut") -> str:
    topics, groups = views.counted(len(cut.topics), "topic"), views.counted(len(cut.positions), "group")
    return f"{topics} with {views.counted(cut.records, 'offset')}, {groups}"


def list_table(shown: "Iterable[Cut]") -> RenderableType:
    """A row for each cut."""
    rows = [_row(cut) for cut in shown]
    return table(["NAME", "TIME", ">TOPICS", ">OFFSETS", ">GROUPS", "KEPT"], rows)


def _row(cut: "Cut") -> tuple[str, ...]:
    numbers = str(len(cut.topics)), number(cut.records), str(len(cut.positions))
    return (cut.name, moment(cut.time_ms, exact=True), *numbers, "yes" if cut.kept else "no")


def description(cut: "Cut", held: int) -> RenderableType:
    """A cut's tables, and its groups' positions. `held`: bytes of files that stay for it."""
    kept = f", kept ({size(held)})" if cut.kept else ""
    topics, positions = ([tuple(map(str, row)) for row in rows] for rows in (cut.partition_rows, cut.position_rows))
    parts: list[RenderableType] = [
        Text(f"{cut.name}  {moment(cut.time_ms, exact=True)}  {_summary(cut)}{kept}"),
        Text(),
        table(["TOPIC", ">VERSION", ">PARTITION", ">START", ">END"], topics),
    ]
    if positions:
        parts += [Text(), table(["GROUP", "TOPIC", ">PARTITION", ">POSITION"], positions)]
    return Group(*parts)


def cut_json(cut: "Cut", *, whole: bool = True) -> dict[str, Any]:
    """A cut as a document; `whole`: with its tables and positions."""
    summary = {
        "name": cut.name,
        "id": cut.id,
        "time_ms": cut.time_ms,
        "kept": cut.kept,
        "topics": len(cut.topics),
        "offsets": cut.records,
        "groups": len(cut.positions),
    }
    if not whole:
        return summary
    tables = {
        name: {
            "version": one.version,
            "topic_id": one.topic_id,
            "partitions": [{"start": start, "end": end} for start, end in one.ranges],
        }
        for name, one in sorted(cut.tables.items())
    }
    positions = [
        {"group": group, "topic": topic, "partition": partition, "offset": offset}
        for group, topic, partition, offset in cut.position_rows
    ]
    return {**summary, "tables": tables, "positions": positions}

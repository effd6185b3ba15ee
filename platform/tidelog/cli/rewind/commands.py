"""`tidelog topic rewind` and `tidelog lake rewind`: what came after a cut leaves, and groups go back to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from tidelog.commands.failures import FAILED
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, note, number, print_json, say, size, table

if TYPE_CHECKING:
    from tidelog.log.lake import Lake
    from tidelog.operations.rewinds import Rewind

ToCut = Annotated[str, typer.Option(metavar="NAME", help="The cut ('tidelog cut list').", show_default=False)]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Only records that this means, such as \"headers['deploy'] = '42'\": key, headers['name'] and timestamp,"
        " with =, !=, <, <=, >, >=, IN, LIKE, BETWEEN, IS NULL, AND, OR, NOT.",
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="BRANCH", help="Bring back what compaction dropped since the cut, from a branch made at it."
    ),
]
Execute = Annotated[bool, typer.Option("--execute", help="Do it; without this, only show what would be done.")]


def rewind_topic(
    call: Session,
    names: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="The topics.", show_default=False)],
    to_cut: ToCut,
    where: Where = None,
    groups: Annotated[
        bool,
        typer.Option("--groups", help="Set groups' offsets after the cut back to it, where a group has no members."),
    ] = False,
    branch: From = None,
    execute: Execute = False,
) -> None:
    """Take the records that came after a cut out of topics: all, or those that a condition means.

    Shows what would go; --execute does it. Offsets stay as holes, as compaction leaves them, and are not given again.
    Writers and readers go on meanwhile; what is written after the start stays, and is named.
    """
    from tidelog.cuts.cut_log import CutLog
    from tidelog.operations.rewinds import rewind_topics
    from tidelog.retention.predicates.parse import InvalidConditionError, parse_where

    try:
        condition = None if where is None else parse_where(where)
    except InvalidConditionError as e:
        raise typer.BadParameter(str(e), param_hint="--where") from None
    with call.open_lake() as opened, _branch(call, branch) as of:
        cut = CutLog(opened).get(to_cut)
        topics = list(dict.fromkeys(names))
        done = rewind_topics(opened, cut, topics, where=condition, groups=groups, execute=execute, branch=of)
    _report(call, done)


@contextmanager
def _branch(call: Session, address: str | None) -> "Iterator[Lake | None]":
    from tidelog.log.lake import Lake

    if address is None:
        yield None
        return
    with Lake(address, False, options=call.store) as branch:
        yield branch


def rewind_lake(call: Session, to_cut: ToCut, branch: From = None, execute: Execute = False) -> None:
    """Take all records that came after a cut out of all topics, and set groups without members back to it.

    Shows what would go; --execute does it. A topic that was made since is emptied. So every transaction after the cut
    leaves as a whole. Groups with members stay where they are, and are named.
    """
    from tidelog.cuts.cut_log import CutLog
    from tidelog.operations.rewinds import rewind_lake as rewind

    with call.open_lake() as opened, _branch(call, branch) as of:
        done = rewind(opened, CutLog(opened).get(to_cut), execute=execute, branch=of)
    _report(call, done)


def _report(call: Session, done: "Rewind") -> None:
    if call.as_json:
        print_json(rewind_json(done))
    else:
        console().print(topics_table(done))
        if done.positions:
            console().print(positions_table(done))
        for text in remarks(done):
            note(text)
        say(f"{'Left' if done.executed else 'Would leave'}: {number(done.records)} records.")
    if not done.executed:
        note("Nothing was changed: add --execute to do it.")
    if done.executed and done.failed:
        raise typer.Exit(FAILED)


def topics_table(done: "Rewind") -> RenderableType:
    """A row for each topic: the records that leave, and the segments that held them."""
    rows = [(one.topic, number(one.records), number(one.rewritten), size(one.rewritten_bytes)) for one in done.topics]
    return table(["TOPIC", ">RECORDS", ">SEGMENTS", ">BYTES"], rows)


def positions_table(done: "Rewind") -> RenderableType:
    """A row for each position after the cut: where it goes, or why it stays."""
    rows = [
        (one.group, one.topic, str(one.partition), str(one.before), str(one.after), one.why_not)
        for one in done.positions
    ]
    return table(["GROUP", "TOPIC", ">PARTITION", ">POSITION", ">NEW-POSITION", "STAYS"], rows)


def remarks(done: "Rewind") -> list[str]:
    """What a person should know besides the figures."""
    told = [f"{topic} stays as it is: {why}." for topic, why in sorted(done.left.items())]
    for name, topics in done.crossing.items():
        told.append(
            f"Transactions of '{name}' after the cut wrote, or may have written, to {', '.join(topics)}, too, and their"
            " part there stays."
            " 'tidelog lake rewind' takes out all of them."
        )
    told += [
        f"{topic} was compacted since the cut: older values that were replaced after it don't come back."
        for topic in done.compacted
    ]
    for back in done.restored:
        told += [f"{back.topic} [{p}] gets nothing back: {why}." for p, why in sorted(back.problems.items())]
        if back.records:
            told.append(f"{back.topic}: {number(back.records)} records come back from the branch.")
    for topic in done.topics:
        told += [f"{topic.topic} [{p}] keeps its records: {why}" for p, why in sorted(topic.failures.items())]
        told += [
            f"{topic.topic} [{p}]: {number(count)} offsets were appended since the start, and stay."
            for p, count in sorted(topic.arrived.items())
        ]
    return told


def rewind_json(done: "Rewind") -> dict[str, Any]:
    """The same as a document."""
    return {
        "cut": done.cut.name,
        "executed": done.executed,
        "records": done.records,
        "topics": [
            {
                "topic": one.topic,
                "records": one.records,
                "segments": one.rewritten,
                "bytes": one.rewritten_bytes,
                "arrived": {str(p): count for p, count in sorted(one.arrived.items())},
                "failures": {str(p): why for p, why in sorted(one.failures.items())},
            }
            for one in done.topics
        ],
        "positions": [
            {
                "group": one.group,
                "topic": one.topic,
                "partition": one.partition,
                "position": one.before,
                "new_position": one.after,
                "stays": one.why_not or None,
            }
            for one in done.positions
        ],
        "restored": [
            {
                "topic": back.topic,
                "records": back.records,
                "copied_bytes": back.copied_bytes,
                "problems": {str(p): why for p, why in sorted(back.problems.items())},
            }
            for back in done.restored
        ],
        "crossing": {name: list(topics) for name, topics in done.crossing.items()},
        "compacted": list(done.compacted),
        "left": dict(done.left),
    }

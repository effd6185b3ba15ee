"""How a mirror's state is shown."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType

from tidelog.commands.terminal import duration, number, size, table
from tidelog.operations.mirrors import MirrorStatus, TableStatus, lag_ms


def shown_status(status: MirrorStatus, now_ms: int) -> dict[str, Any]:
    """The status as JSON, with the lag by the reader's clock."""
    return asdict(status) | {"lag_ms": lag_ms(status, now_ms), "age_ms": max(0, now_ms - status.now_ms)}


def status_lines(status: MirrorStatus, follows: bool, now_ms: int) -> Iterator[RenderableType]:
    """The status for people, line by line."""
    age = duration(max(0, now_ms - status.now_ms))
    state = "stopped" if status.ended else "last heard of"
    yield f"source {status.source}  mirror {state} {age} ago" + ("" if follows else "  promoted since")
    whole = "never" if status.whole_ms is None else f"{duration(max(0, now_ms - status.whole_ms))} ago"
    yield (
        f"behind by {number(status.behind_entries)} entries, {size(status.behind_bytes)},"
        f" {duration(lag_ms(status, now_ms))}  last the same in all tables {whole}"
    )
    if status.problem:
        yield status.problem
    rows = [
        (
            name,
            number(one.source),
            number(one.follower),
            _waiting(one, now_ms),
            one.problem,
        )
        for name, one in status.tables.items()
    ]
    yield table(("table", "source", "follower", "to be deleted", "not shipped because"), rows)


def _waiting(one: TableStatus, now_ms: int) -> str:
    """The removed files that are still here, and when the last of them goes, as far as that is known."""
    if not one.waiting_bytes:
        return ""
    if one.waiting_until_ms is None:
        return str(size(one.waiting_bytes))
    return f"{size(one.waiting_bytes)} within {duration(max(0, one.waiting_until_ms - now_ms))}"

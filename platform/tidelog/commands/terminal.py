"""What people read: tables, notes, questions; and JSON for programs."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from inspect import cleandoc
from typing import Any, TextIO

from rich import box
from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

# Where no terminal has a width, a row is a line, however long.
_NO_TERMINAL_WIDTH = 100_000

# What Kafka's tools show where there is nothing.
DASH = "-"

# A word that is longer, such as an id or an address, may be cut where a table is too wide.
_LONGEST_WORD = 20

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DURATIONS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let the caller see it: rich would end the program with an error's code."""
        raise


def console(*, stderr: bool = False) -> Console:
    """A console for stdout or stderr as they are now; without a terminal it neither colours nor wraps."""
    out = _Console(stderr=stderr, highlight=False, emoji=False, markup=False)
    if not out.is_terminal:
        out.width = _NO_TERMINAL_WIDTH
    return out


def interactive() -> bool:
    """Whether stdin is a terminal, so that a person can be asked."""
    return sys.stdin.isatty()


def note(text: str) -> None:
    """Tell the person something that is no data: a line on stderr, marked with % as kcat does."""
    sys.stderr.write(f"% {text}\n")
    sys.stderr.flush()


def say(text: str | Text, *, stderr: bool = False) -> None:
    """Print a sentence: wrapped at words for a person, one line for a program."""
    out = console(stderr=stderr)
    out.print(text if isinstance(text, Text) else Text(text), soft_wrap=not out.is_terminal)


def print_json(value: Any) -> None:
    """Print one JSON document to stdout: over several lines on a terminal, else as one, as collectors of logs read."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, ensure_ascii=not shows_unicode(sys.stdout), indent=indent) + "\n")


def shows_unicode(stream: TextIO) -> bool:
    """Whether a stream takes every character: one of a C locale does not."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> RenderableType:
    """A table; a column whose header starts with '>' is set flush right (numbers).

    On a terminal that is too narrow for its words each row becomes lines of its own, a line for each column.
    """
    out, cells = console(), [tuple(row) for row in rows]
    plain = not out.is_terminal
    widths = [_least_width(column, [row[i] for row in cells]) for i, column in enumerate(columns)]
    if not plain and sum(widths) + 3 * (len(widths) - 1) > out.width:
        return _stacked(columns, cells)
    grid = Table(
        box=None if plain else box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        header_style="" if plain else "bold",
        padding=(0, 2, 0, 0) if plain else (0, 1),
    )
    for column, least in zip(columns, widths, strict=True):
        justify: JustifyMethod = "right" if column.startswith(">") else "left"
        grid.add_column(column.removeprefix(">"), justify=justify, overflow="fold", min_width=least)
    for row in cells:
        grid.add_row(*row)
    return grid


def _least_width(column: str, cells: Sequence[str | Text]) -> int:
    """How wide a column must be so that no number, and no word but a very long one, is cut."""
    texts = [column.removeprefix(">"), *map(str, cells)]
    words = texts if column.startswith(">") else [word for text in texts for word in text.split()]
    return min(_LONGEST_WORD, max(map(len, words), default=0))


def _stacked(columns: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> RenderableType:
    """Each row as lines of a header and a value, headers flush left; what is empty is left out."""
    grid = Table(box=None, pad_edge=False, show_edge=False, show_header=False, padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for number_of, row in enumerate(rows):
        if number_of:
            grid.add_row("", "")
        for column, cell in zip(columns, row, strict=True):
            if str(cell):
                grid.add_row(column.removeprefix(">"), cell)
    return grid


def prose(text: str) -> str:
    """A docstring's paragraphs without its line breaks, which typer would print as they stand."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in cleandoc(text).split("\n\n"))


def shown_or_dash(value: object) -> str:
    """A value as text; None as Kafka's tools show what there is not."""
    return DASH if value is None else str(value)


def number(count: int) -> str:
    """1234567 -> "1,234,567"."""
    return f"{count:,}"


def size(count: int) -> str:
    """Bytes in a unit that reads well: 1536 -> "1.5 KiB"."""
    amount, unit = float(count), 0
    while round(amount, 1) >= 1024 and unit < len(_SIZES) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{amount:,.1f} {_SIZES[unit]}"


def duration(ms: int) -> str:
    """Milliseconds in the largest unit that divides them: 604800000 -> "7 d"."""
    for length, unit in _DURATIONS:
        if ms and ms % length == 0:
            return f"{ms // length} {unit}"
    return f"{ms} ms"


def moment(ms: int, *, exact: bool = False) -> str:
    """A time, in ms since the epoch, to the second or `exact`.

    >>> moment(1_764_320_400_007), moment(1_764_320_400_007, exact=True)
    ('2025-11-28 09:00:00 UTC', '2025-11-28 09:00:00.007 UTC')
    """
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%d %H:%M:%S}{f'.{ms % 1000:03}' if exact else ''} UTC"


def in_words(name: str, value: str) -> str:
    """What a configuration's number means, "" where the number says it itself: retention.ms 60000 -> "1 min"."""
    if not value.isdigit():
        return ""
    words = duration(int(value)) if name.endswith(".ms") else size(int(value)) if name.endswith(".bytes") else ""
    if int(value) == (1 << 63) - 1:
        return "no limit"
    return "" if words == f"{value} {words.rpartition(' ')[2]}" else words

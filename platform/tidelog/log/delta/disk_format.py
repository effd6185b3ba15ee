"""Which on-disk format this tidelog reads and writes (docs/format.md): its number, and the protocol of every table."""

from collections.abc import Sequence
from typing import Final

from tidelog.log.delta.actions import Protocol

FORMAT_VERSION: Final = 2
# That of a table whose values are columns; a lake's file and all other tables have the one above.
TYPED_FORMAT_VERSION: Final = 3

# Every engine that knows Delta's protocol reads a table of this protocol, and refuses to write to it: it knows no
# feature "tidelog". An empty list of reader features would stop reading, too.
PROTOCOL: Final = Protocol(1, 7, None, ("tidelog",))


def other_format(what: str, version: int, taken: Sequence[int] = (FORMAT_VERSION,)) -> tuple[str, str]:
    """Why `what`, of a format version that is none of those `taken`, is refused, and what to do."""
    older = "Use the tidelog that wrote it, or produce its records to a new lake."
    formats = f"format{'s' if len(taken) > 1 else ''} {' and '.join(map(str, taken))}"
    why = f"{what} has on-disk format {version}; this tidelog reads and writes {formats} and no other."
    return why, "Upgrade tidelog." if version > max(taken) else older


def described(protocol: Protocol) -> str:
    """A protocol in words.

    >>> described(PROTOCOL)
    'reader 1, writer 7, writer features [tidelog]'
    """
    words = [f"reader {protocol.reader}", f"writer {protocol.writer}"]
    for which, features in (("reader", protocol.reader_features), ("writer", protocol.writer_features)):
        if features is not None:
            words.append(f"{which} features [{', '.join(features)}]")
    return ", ".join(words)

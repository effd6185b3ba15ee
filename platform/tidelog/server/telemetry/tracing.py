"""Whose traces requests belong to, how many may begin, and where they become traces: without OpenTelemetry's packages.

Source: W3C Trace Context (traceparent).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from tidelog.log.base.request_ids import Attributes, RequestSpan

# The most traces that begin in a second, and at once, whatever is asked for.
MOST_TRACES_A_SECOND: Final = 100.0
# The traces of a request's records that its span names, and the bytes in which they are looked for.
MOST_LINKS: Final = 32
LOOKED_AT_BYTES: Final = 256 * 1024

_VERSION_0: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
# A header of that name in a record, with a value of version 0: lengths are zigzag varints.
_IN_RECORDS: Final = re.compile(rb"\x16traceparent\x6e(00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})")


class TraceParent(NamedTuple):
    """A span of someone else's, as a traceparent names it."""

    trace_id: int
    span_id: int
    is_sampled: bool


def parsed_traceparent(text: bytes) -> TraceParent | None:
    """The span that a traceparent names; None where it names none.

    >>> parsed_traceparent(b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").is_sampled
    True
    """
    match = _VERSION_0.fullmatch(text)
    if match is None or match[1] == b"ff" or (match[1] == b"00" and match[5]):
        return None
    parent = TraceParent(int(match[2], 16), int(match[3], 16), bool(int(match[4], 16) & 1))
    return parent if parent.trace_id and parent.span_id else None


def traceparents(texts: Iterable[bytes]) -> list[TraceParent]:
    """The spans that traceparents name, each once, `MOST_LINKS` at most."""
    parents: dict[TraceParent, None] = {}
    for text in texts:
        parent = parsed_traceparent(text)
        if parent is not None:
            parents[parent] = None
            if len(parents) == MOST_LINKS:
                break
    return list(parents)


def traceparents_of_records(records: bytes | memoryview) -> list[TraceParent]:
    """Those in headers of records that are not compressed, within the first `LOOKED_AT_BYTES`."""
    return traceparents(match[1] for match in _IN_RECORDS.finditer(memoryview(records)[:LOOKED_AT_BYTES]))


def traceparents_of_pieces(pieces: Iterable[bytes | memoryview]) -> list[TraceParent]:
    """Those of several pieces of records, each once."""
    parents: dict[TraceParent, None] = {}
    left = LOOKED_AT_BYTES
    for piece in pieces:
        if left <= 0 or len(parents) >= MOST_LINKS:
            break
        parents |= dict.fromkeys(traceparents_of_records(memoryview(piece)[:left]))
        left -= len(piece)
    return list(parents)[:MOST_LINKS]


class TraceBudget:
    """How many traces may begin: a bucket that refills at `MOST_TRACES_A_SECOND`. Time comes with the calls."""

    def __init__(self, now_s: float) -> None:
        self._left = MOST_TRACES_A_SECOND
        self._at_s = now_s

    def take(self, now_s: float) -> bool:
        """Whether one more may begin."""
        left = min(MOST_TRACES_A_SECOND, self._left + max(0.0, now_s - self._at_s) * MOST_TRACES_A_SECOND)
        may = left >= 1
        self._left, self._at_s = left - may, now_s
        return may


class Tracing(Protocol):
    """Where a process's requests, and what its tasks do, become traces. For any thread."""

    def begin(
        self, name: str, start_s: float, parents: Sequence[TraceParent] = (), *, is_request: bool = True
    ) -> RequestSpan | None:
        """The first span of a request, or of other work; None where it is not traced.

        It goes on in its parent's trace where it has one parent, and names all where it has several. `start_s`: on the
        elapsed clock.
        """


def traced(
    tracing: Tracing | None, name: str, start_s: float, end_s: float, attributes: Attributes,
    parents: Sequence[TraceParent] = (), error: str = "",
) -> None:  # fmt: skip
    """Have work that is done as a trace of one span, where there is tracing, and it takes this one."""
    span = None if tracing is None else tracing.begin(name, start_s, parents, is_request=False)
    if span is not None:
        span.note(attributes)
        span.end(end_s, error)

"""The log of a process, in one format everywhere: lines for people, or JSON, on stderr and nowhere else.

Every line has its time, level and words, what the process is (`broker=1`), and the request that it is about where
there is one. Of one kind of message, which is its place in the code, a minute has `MOST_A_MINUTE` lines at most: what
comes beyond them is counted, and the count is written. No line holds what a record holds.
"""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import gmtime
from typing import Any, Final, Literal, TextIO

import orjson

from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.base.request_ids import REQUEST, RequestId

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

MOST_A_MINUTE: Final = 100
_MINUTE_S: Final = 60.0
# Counts what it leaves out itself: nothing else may be left out of an audit.
_AUDIT: Final = "tidelog.audit"


class TextLines(logging.Formatter):
    """Lines such as `2026-11-22T16:05:01.123Z WARNING broker=1 request=10.0.0.7:51234/app/17 The store is away.`"""

    converter = staticmethod(gmtime)

    def __init__(self, fields: dict[str, str]) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s%(fields)s %(message)s", "%Y-%m-%dT%H:%M:%S")
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        """One line, and those of a traceback."""
        record.fields = "".join(f" {name}={value}" for name, value in _told(record, self._fields))
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as its base calls it
        """One line: a name that a client chose must not begin a line of its own."""
        record.message = record.message.replace("\r", "\\r").replace("\n", "\\n")
        return super().formatMessage(record)


class JsonLines(logging.Formatter):
    """One JSON document a line: time, level, logger, what the process is, request, message, and the traceback."""

    converter = staticmethod(gmtime)

    def __init__(self, fields: dict[str, str]) -> None:
        super().__init__(datefmt="%Y-%m-%dT%H:%M:%S")
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message holds."""
        line: dict[str, Any] = {
            "time": f"{self.formatTime(record, self.datefmt)}.{record.msecs:03.0f}Z",
            "level": record.levelname,
            "logger": record.name,
            **dict(_told(record, self._fields)),
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def _told(record: logging.LogRecord, fields: dict[str, str]) -> Iterator[tuple[str, str]]:
    yield from fields.items()
    request = getattr(record, "request", None) or REQUEST.get()
    if request is not None:
        yield "request", str(request)
        if isinstance(request, RequestId) and request.span is not None:
            yield "trace", request.span.trace_id


@dataclass(slots=True)
class _Flood:
    """What came of one kind in the minute that began at `since_s`."""

    since_s: float
    lines: int = 0
    left_out: int = 0


class LimitedLines(logging.StreamHandler[TextIO]):
    """Writes lines, of one kind no more than `MOST_A_MINUTE` a minute.

    `fields`: what the process is, in each line. `hide`: takes out of a line what no log may have. Both may be set
    later.
    """

    def __init__(self, stream: TextIO, clock: Clock | None = None, fields: dict[str, str] | None = None) -> None:
        super().__init__(stream)
        self.fields = {} if fields is None else fields
        self.hide: Callable[[str], str] = str
        self._clock = clock or SystemClock()
        self._kinds: dict[tuple[str, int, str], _Flood] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line, or count it. Counts whose minute is over are written with the next line of any kind."""
        now_s = self._clock.elapsed_s()
        self._write_counts(now_s - _MINUTE_S)
        if record.name != _AUDIT:
            kind = self._kinds.setdefault((record.name, record.levelno, str(record.msg)), _Flood(now_s))
            kind.lines += 1
            if kind.lines > MOST_A_MINUTE:
                kind.left_out += 1
                return
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """The line, without what no log may have."""
        return self.hide(super().format(record))

    def close(self) -> None:
        """Write all counts."""
        self._write_counts(float("inf"))
        super().close()

    def _write_counts(self, until_s: float) -> None:
        for place in [place for place, one in self._kinds.items() if one.since_s <= until_s]:
            one, (name, level, text) = self._kinds.pop(place), place
            if one.left_out:
                said = f"{one.left_out} more lines like this one were left out: {text}"
                super().emit(logging.LogRecord(name, level, __file__, 0, said, (), None))


def lines_to_stderr(log_format: LogFormat | None, fields: dict[str, str] | None = None) -> LimitedLines:
    """What writes a log's lines to stderr; `fields`: what the process is, in each line."""
    handler = LimitedLines(sys.stderr, fields=fields)
    handler.setFormatter((JsonLines if log_format == "json" else TextLines)(handler.fields))
    return handler


@contextmanager
def logging_lines(
    log_format: LogFormat | None = None, level: LogLevel | None = None, **fields: str
) -> Iterator[LimitedLines]:
    """Meanwhile tidelog's log goes to stderr in lines, from `level` on (INFO), and nowhere else.

    `fields`: what the process is, in each line; the caller may change them in what is given back.
    """
    handler = lines_to_stderr(log_format, fields)
    logger = logging.getLogger("tidelog")
    before = logger.handlers[:], logger.level
    logger.handlers[:] = [handler]
    logger.setLevel((level or "info").upper())
    try:
        yield handler
    finally:
        handler.close()
        logger.handlers[:] = before[0]
        logger.setLevel(before[1])

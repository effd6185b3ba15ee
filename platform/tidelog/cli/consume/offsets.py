"""Where `consume` starts and stops: kcat's `-o`, and the offsets that it comes to in each partition."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_NUMBER = re.compile(r"(-?)([0-9]+)")
_TIME = re.compile(r"([se])@([0-9]+)")


# What a start counts from.
Anchor = Literal["beginning", "end", "offset", "last", "time"]


@dataclass(frozen=True, slots=True)
class Span:
    """What to consume. `value`: an offset, how many of the last, or ms since the epoch, as `start` says.

    `stop_ms`: up to the first record with a timestamp at or after it, which is not included; None for no such end.
    """

    start: Anchor = "beginning"
    value: int = 0
    stop_ms: int | None = None


_WORDS: dict[str, Anchor] = {"beginning": "beginning", "earliest": "beginning", "end": "end", "latest": "end"}
_ALLOWED = (
    "beginning, end, an offset (42), how many of the last (-10), s@MS (start at a time, ms since the epoch) or e@MS"
    " (stop at a time)"
)


def parse_span(texts: Sequence[str]) -> Span:
    """`["s@1700000000000", "e@1700000060000"]` as a span. Raises ValueError.

    Source: kcat's `-o`; its `stored` is what `--group` starts from by default.
    """
    starts, stops = [], []
    for text in texts:
        time = _TIME.fullmatch(text)
        if time and time[1] == "e":
            stops.append(int(time[2]))
        else:
            starts.append(Span("time", int(time[2])) if time else _start(text))
    if len(starts) > 1 or len(stops) > 1:
        raise ValueError("one start and one stop (e@MS) are all that can be given")
    start = starts[0] if starts else Span()
    return Span(start.start, start.value, stops[0] if stops else None)


def _start(text: str) -> Span:
    if text in _WORDS:
        return Span(_WORDS[text])
    if text == "stored":
        raise ValueError(
            "'stored' needs a consumer group: with --group the group's committed offsets count by themselves, so leave"
            " -o out; without one give " + _ALLOWED
        )
    number = _NUMBER.fullmatch(text)
    if number is None:
        raise ValueError(f"{text!r} is no position; give {_ALLOWED}")
    return Span("last" if number[1] else "offset", int(number[2]))


def starting_offset(span: Span, start: int, end: int, at_time: int | None) -> int:
    """The offset that a partition with offsets [start, end) is consumed from.

    `at_time`: the first offset at or after the span's time; None when there is none, which starts at the end, as in
    Kafka. An offset is taken as it is: whether the partition has it is the fetch's question.
    """
    match span.start:
        case "beginning":
            return start
        case "end":
            return end
        case "last":
            return max(start, end - span.value)
        case "time":
            return end if at_time is None else at_time
    return span.value

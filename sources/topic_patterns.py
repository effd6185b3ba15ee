"""`subscribePattern`: Java's regular expressions over topic names, by Python's `re`.

Names are ASCII letters, digits, `.`, `_` and `-`, so the two languages agree but for a few spellings. Those are
rewritten; the ones that would mean something else in Python are refused.
"""

import re
from collections.abc import Iterable

from tidelog.log.base.errors import InvalidOptionError

_ALPHA = "a-zA-Z"
_CLASSES = {
    "lower": "a-z",
    "upper": "A-Z",
    "ascii": r"\x00-\x7f",
    "alpha": _ALPHA,
    "digit": "0-9",
    "alnum": f"{_ALPHA}0-9",
    "punct": r"!-/:-@\[-`{-~",
    "graph": "!-~",
    "print": " -~",
    "xdigit": "0-9a-fA-F",
    "l": _ALPHA,
    "ll": "a-z",
    "lu": "A-Z",
    "n": "0-9",
    "nd": "0-9",
    "isalphabetic": _ALPHA,
    "isletter": _ALPHA,
    "isdigit": "0-9",
    "islowercase": "a-z",
    "isuppercase": "A-Z",
}
_PROPERTY = re.compile(r"\\([pP])(?:\{(\w+)\}|(\w))")
_QUOTE = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_NAMED_BACK_REFERENCE = re.compile(r"\\k<(\w+)>")
_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")
_REFUSED_ESCAPES = "RXGNckxuhHvVeo0"


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern, ready for `match_topics`. Raises InvalidOptionError for one that is wrong or can't be had."""
    try:
        return re.compile(_translate(pattern))
    except (re.error, RecursionError) as error:
        raise _refused(pattern, str(error)) from error


def match_topics(pattern: str, topics: Iterable[str]) -> list[str]:
    """The topics, sorted, in whose name the pattern matches anywhere.

    Example: `ord` matches `orders` and `reorders`. Source: `SubscribePatternStrategy.assignedTopicPartitions`.
    """
    compiled = compile_pattern(pattern)
    return sorted(topic for topic in topics if compiled.search(topic))


def _translate(pattern: str) -> str:
    parts: list[str] = []
    at = 0
    in_class = False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            part, at = _escape(pattern, at, in_class=in_class)
        elif in_class:
            if char == "[" or pattern.startswith("&&", at):
                raise _refused(pattern, "classes inside classes can't be had here; write one class")
            part, at, in_class = char, at + 1, char != "]"
        elif char == "[":
            # a `]` or `^]` right after the bracket is a member, in both languages
            opening = re.match(r"\[\^?\]?", pattern[at:])
            part = opening.group() if opening else char
            at, in_class = at + len(part), True
        elif named := _NAMED_GROUP.match(pattern, at):
            part, at = "(?P<", named.end()
        else:
            part, at = char, at + 1
        parts.append(part)
    return "".join(parts)


def _escape(pattern: str, at: int, *, in_class: bool) -> tuple[str, int]:
    """What the escape at `at` is in Python, and where it ends."""
    if quote := _QUOTE.match(pattern, at):
        return re.escape(quote.group(1)), quote.end()
    if prop := _PROPERTY.match(pattern, at):
        members = _CLASSES.get((prop.group(2) or prop.group(3)).lower())
        negated = prop.group(1) == "P"
        if members is None or (negated and in_class):
            raise _refused(pattern, f"{prop.group()} can't be had here; write the characters")
        return (members if in_class else f"[{'^' if negated else ''}{members}]"), prop.end()
    if back := _NAMED_BACK_REFERENCE.match(pattern, at):
        return f"(?P={back.group(1)})", back.end()
    after = pattern[at + 1 : at + 2]
    if after == "z":
        return r"\Z", at + 2
    if after and after in _REFUSED_ESCAPES:
        raise _refused(pattern, f"\\{after} can't be had here and no topic name needs it")
    return pattern[at : at + 2], at + 2


def _refused(pattern: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"Pattern {pattern!r} of the option 'subscribePattern' is not valid: {why}. Give a regular expression of "
        "Java's that matches somewhere in the topics' names."
    )

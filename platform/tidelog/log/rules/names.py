"""Topic names: Kafka's rule, and which names can't stand side by side."""

import re
from collections.abc import Iterable
from typing import Final

from tidelog.log.base.errors import InvalidTopicError
from tidelog.log.delta import layout

MAX_NAME_LENGTH: Final = 249

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]*")

# Legal in Kafka, but taken in a lake's root folder.
_RESERVED: Final = {
    "__lake.json": "it is the lake's own configuration file",
    "__mirror": "a mirror keeps its leases and its rounds there",
    "__branches": "a lake keeps notes of its branches there",
    "_delta_log": "other engines would take the whole lake for one Delta table",
}


# Tables of rows (docs/format.md), where a topic would be in the way.
_TABLES: Final = re.compile(r"__access|__cluster|__cuts|__(consumer_offsets|transaction_state)(-\d+)?")


def validate(name: str) -> None:
    """Raise InvalidTopicError unless `name` is a topic's name by Kafka's rule: `[a-zA-Z0-9._-]{1,249}`, no dots alone.

    The reason is worded as Kafka words it. Names that a lake's root folder needs itself are refused too.
    Source: `org.apache.kafka.common.internals.Topic.validate`.
    """
    reason = why_invalid(name)
    if reason:
        raise InvalidTopicError(
            f"Topic name is invalid: {reason}. Give the topic a name of 1 to {MAX_NAME_LENGTH} ASCII letters, digits, "
            "'.', '_' and '-'."
        )


def is_internal(name: str) -> bool:
    """Return whether `name` is one of tidelog's own topics: those that start with `__`."""
    return name.startswith("__")


def is_table(name: str) -> bool:
    """Return whether `name` is a table of rows of tidelog's own, which no topic may be called."""
    return _TABLES.fullmatch(name) is not None


def may_be_topic(name: str) -> bool:
    """Return whether a folder of that name, in a lake's root, may be a topic's."""
    return not (why_invalid(name) or is_table(name) or name.startswith(layout.PROOF_PREFIX))


def collides(a: str, b: str) -> bool:
    """Return whether two different names are the same but for '.' against '_': `a.b_c` and `a_b.c`.

    Kafka refuses the second of them, because metrics and other systems' table names write both alike.
    Source: `Topic.hasCollision`.
    """
    return a != b and _unified(a) == _unified(b)


def check_new(name: str, existing: Iterable[str]) -> None:
    """Raise InvalidTopicError unless a topic `name` may be created beside the topics `existing`.

    A topic of the very same name is no collision: whether it may exist already is the caller's question.
    """
    validate(name)
    if is_table(name):
        raise InvalidTopicError(
            f"Topic '{name}' can't be created: tidelog keeps a table of its own under that name, which holds no "
            "records. Choose another name."
        )
    unified = _unified(name)
    others = sorted(other for other in existing if other != name and _unified(other) == unified)
    if others:
        raise InvalidTopicError(
            f"Topic '{name}' collides with existing topic: {others[0]}. Names that differ only in '.' against '_' "
            "can't stand side by side, as in Kafka. Choose another name, or delete that topic."
        )


def why_invalid(name: str) -> str | None:
    """Return what is wrong with a name, None when nothing is."""
    if not isinstance(name, str):
        return f"a name is a string, not {type(name).__name__}"
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if name in _RESERVED:
        return f"'{name}' is taken, because {_RESERVED[name]}"
    return None


def _unified(name: str) -> str:
    return name.replace(".", "_")

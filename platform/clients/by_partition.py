"""One request for many partitions of a topic, with an answer or an error for each."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from tidelog.log.base.errors import TidelogError, UnknownTopicError

V = TypeVar("V")
R = TypeVar("R")


def ask_together(
    ask: Callable[[Mapping[int, V]], Mapping[int, R]], wanted: Mapping[int, V]
) -> dict[int, R | TidelogError]:
    """Ask once for all partitions of `wanted`; one by one only where one of them is refused, to learn which.

    An error of the topic or of the store is the answer for each of them.
    """
    try:
        return dict(ask(wanted))
    except TidelogError as e:
        if len(wanted) == 1 or e.retriable or isinstance(e, UnknownTopicError):
            return dict.fromkeys(wanted, e)
    found: dict[int, R | TidelogError] = {}
    for partition, value in wanted.items():
        found |= ask_together(ask, {partition: value})
    return found

"""Short ways of requests, with a count of those that took them."""

from collections.abc import Callable
from typing import Any


class CountedWay:
    """A handler's short way. `begun`: how many requests took it."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler
        self.begun = 0

    def begin(self, call: Any, done: Callable[[], object]) -> Any:
        """As `ShortWay.begin`."""
        reply = self._handler.begin(call, done)
        self.begun += reply is not None
        return reply


class CountedSingles:
    """A handler's single way. `begun`: how many requests took it."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler
        self.refused_single = handler.refused_single
        self.begun = 0

    def single(self, *args: Any) -> Any:
        """As `SingleWay.single`."""
        request = self._handler.single(*args)
        self.begun += request is not None
        return request

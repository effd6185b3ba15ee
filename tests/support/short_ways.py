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

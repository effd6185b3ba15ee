"""A budget of memory that all connections share."""

from collections.abc import Callable

# A budget that was used up has room again below this share of it, so that connections don't start and stop with each
# answer.
_ROOM_AGAIN = 0.75


class Budget:
    """Bytes that connections take and give back. One that finds it full waits to be called; none is refused."""

    __slots__ = ("_most_bytes", "_on_full", "_waiting", "is_full", "used")

    def __init__(self, most_bytes: int, on_full: Callable[[], None] | None = None) -> None:
        self._most_bytes = most_bytes
        self._on_full = on_full
        self._waiting: dict[Callable[[], None], None] = {}
        self.used = 0
        self.is_full = False

    def take(self, count: int) -> None:
        """Take bytes, whether there is room or not: they are here already."""
        self.used += count
        if self.used >= self._most_bytes and not self.is_full:
            self.is_full = True
            if self._on_full is not None:
                self._on_full()

    def give_back(self, count: int) -> None:
        """Give bytes back, and call those that wait where there is room again."""
        self.used -= count
        if self.is_full and self.used <= self._most_bytes * _ROOM_AGAIN:
            self.is_full = False
            waiting, self._waiting = self._waiting, {}
            for call in waiting:
                call()

    def wait(self, call: Callable[[], None]) -> None:
        """Have `call` called once, when there is room again; the same one only once."""
        self._waiting[call] = None

    def forget(self, call: Callable[[], None]) -> None:
        """Call it no more."""
        self._waiting.pop(call, None)

"""Pairs of lakes of which one follows the other."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from support import logs
from support.faults import FaultyStorage
from support.logs import FakeClock, memory_lake, open_lake, quiet

from tidelog.log.lake import Lake
from tidelog.log.storage import Storage
from tidelog.mirror.comparison import differences
from tidelog.mirror.follower_setup import adopt
from tidelog.mirror.mirror import Mirror

Hook = Callable[[str, str, str], None]


def empty_store(clock: FakeClock, name: str = "follower", hook: Hook = quiet) -> FaultyStorage:
    """A store in memory that fails on request."""
    return FaultyStorage(logs.MemoryDisk(name, clock), hook)


class Pair:
    """A source with a life of its own, and the store of its follower. Lakes are opened again each time."""

    def __init__(self, source: Storage | None = None, clock: FakeClock | None = None) -> None:
        if source is None:
            _, source, clock = memory_lake()
        self.clock = clock or FakeClock()
        self.source = source
        self.follower = empty_store(self.clock)

    def lake(self) -> Lake:
        """The source."""
        return open_lake(self.source, self.clock)

    def copy(self, *, to_promote: bool = False) -> Lake:
        """The follower."""
        return open_lake(self.follower, self.clock, may_change_follower=to_promote)

    @contextmanager
    def mirror(self, **options: Any) -> Iterator[Mirror]:
        """A mirror's process, which is not closed in order when its block ends by an error."""
        source, follower = self.lake(), self.copy(to_promote=True)
        adopt(source, follower)
        mirror = Mirror(source, follower, **options)
        yield mirror
        mirror.close()

    def ship(self, **options: Any) -> Mirror:
        """Rounds until there is nothing to ship; the mirror, which has ended."""
        with self.mirror(**options) as mirror:
            while mirror.round().entries:
                pass
        return mirror

    def require_equal(self) -> None:
        """Both lakes hold the same."""
        assert list(differences(self.lake(), self.copy())) == []

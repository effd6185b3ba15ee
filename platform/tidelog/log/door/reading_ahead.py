"""Reading a log's entries one after another: at a distant store several at once, when there turn out to be many.

A writer there that fetched them one by one would see the head move as fast as it follows, and never reach it.
"""

from collections.abc import Callable
from concurrent.futures import Executor, wait

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.storage.port import Distant, SeveralNodes, Storage
from tidelog.log.storage.store_time import NEVER, StoreTime

_MOST = 32


class ReadingAhead:
    """Entries by version, each fetched once, in rising order from `begin` on. Not for several threads.

    The first entry is fetched by itself, and so is the second; where both are there, two, four, eight ... at a time.
    Where the last look found any, it begins with as many and one more: where another writer appends between any two
    looks, one trip brings its entry and says that there is no other. `looked`: when the newest fetch began.
    `sure`: whether "not there" is the word of two nodes of a store that has several; it is from the start.
    """

    def __init__(self, storage: Storage, path_of: Callable[[int], str], time: StoreTime) -> None:
        self._storage = storage
        self._helpers = storage.helpers() if isinstance(storage, Distant) else None
        self._path_of = path_of
        self._time = time
        self._held: dict[int, bytes | None] = {}
        self._found = 0
        self._expected = 0
        self._from_one = storage.get_from_one if isinstance(storage, SeveralNodes) else storage.get
        self.sure = True
        self.looked = NEVER

    def begin(self, *, sure: bool = True) -> None:
        """A new look at the log: prefetched entries are dropped, they may be stale."""
        self.sure = sure
        self._held.clear()
        self._expected = self._found + 1
        self._found = 0

    def get(self, version: int) -> bytes:
        """The entry's bytes. Raises `ObjectNotFoundError`."""
        if version not in self._held:
            self._held.clear()
            self.looked = self._time.moment()
            count = min(_MOST, self._found or self._expected)
            if self._helpers is None or count <= 1:
                found = self._get(self._path_of(version))
                self._found += 1
                return found
            self._ask(self._helpers, range(version, version + count))
        data = self._held.pop(version)
        if data is None:
            raise ObjectNotFoundError(f"There is no entry {self._path_of(version)}.")
        self._found += 1
        return data

    def _get(self, path: str) -> bytes:
        return self._storage.get(path) if self.sure else self._from_one(path)

    def _ask(self, helpers: Executor, versions: range) -> None:
        """Fetch these. Entries past one that is missing were created after the look, and are dropped."""
        asked = [helpers.submit(self._get, self._path_of(version)) for version in versions]
        wait(asked)
        for version, answer in zip(versions, asked, strict=True):
            try:
                self._held[version] = answer.result()
            except ObjectNotFoundError:
                self._held[version] = None
                return

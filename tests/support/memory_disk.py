"""A store in memory that loses power like a machine with a local disk."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from tidelog.log.base.clock import Clock
from tidelog.log.storage.memory import MemoryStorage, _Object
from tidelog.log.storage.port import Linked, Storage


class MemoryDisk(MemoryStorage):
    """Objects in memory: those that were `put` or `create`d last after `sync`, the others at once.

    >>> storage = MemoryDisk("example")
    >>> storage.put("a", b"1")
    >>> storage.put_if_absent("b", b"2")
    True
    >>> storage.lose_power()
    >>> [found.path for found in storage.list_after("")]
    ['b']
    """

    def __init__(self, name: str, clock: Clock | None = None) -> None:
        super().__init__(name, clock)
        self._durable: dict[str, _Object] = {}
        self._deleted: set[str] = set()  # the keys of _durable that are not in _objects

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        """Durable at once, and so are earlier deletes in its folder."""
        created = super().put_if_absent(path, data, before)
        if created:
            self._make_durable(path)
        return created

    def create_run(self, objects: Iterable[tuple[str, bytes]]) -> int:
        """Durable when it returns: a power loss before that takes all of them, as it may."""
        paths: list[str] = []

        def noted() -> Iterator[tuple[str, bytes]]:
            for path, data in objects:
                paths.append(path)
                yield path, data

        created = super().create_run(noted())
        for path in paths[:created]:
            self._make_durable(path)
        return created

    def link_in(self, source: Storage, paths: Sequence[str]) -> Linked:
        """Durable at once, where the source is no disk; else as far as the source's objects are."""
        done = super().link_in(source, paths)
        lost = source._objects.keys() - source._durable.keys() if isinstance(source, MemoryDisk) else set()
        for path in set(paths) - set(done.missing) - lost:
            self._make_durable(path)
        return done

    def sync(self, paths: Iterable[str]) -> list[str]:
        """Let these objects survive a power loss, and earlier deletes in their folders; the paths without an object."""
        wanted = list(paths)
        missing = super().sync(wanted)
        for path in wanted:
            self._make_durable(path)
        return missing

    def delete(self, path: str) -> None:
        """A power loss may bring it back."""
        super().delete(path)
        with self._lock:
            if path in self._durable:
                self._deleted.add(path)

    def lose_power(self) -> None:
        """Forget what a power loss takes from a local disk at worst.

        Objects that were `put` or `create`d and not synced are gone, or have the durable content that they
        replaced. Deleted objects are back, unless their folder was synced since (by `sync` of, or by
        `put_if_absent` of, another object directly in it).
        """
        with self._lock:
            self._objects = dict(self._durable)
            self._paths = sorted(self._objects)
            self._deleted.clear()

    def _store(self, path: str, data: bytes | memoryview) -> None:
        super()._store(path, data)
        self._deleted.discard(path)

    def _make_durable(self, path: str) -> None:
        with self._lock:
            if path not in self._objects:
                return
            self._durable[path] = self._objects[path]
            folder = path.rpartition("/")[0]
            settled = {p for p in self._deleted if p.rpartition("/")[0] == folder}
            self._deleted -= settled
            for gone in settled:
                del self._durable[gone]

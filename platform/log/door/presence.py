"""Whether the segments that a commit brings are in storage: no entry may name what is not there.

What this process has written, the store has confirmed to it, and a sync finds it on a local disk. What another process
has written (a Spark task) is looked up: that process may see another place under the lake's address.
"""

from collections.abc import Collection, Iterable, Mapping

from tidelog.log.base.errors import MissingSegmentError, ObjectNotFoundError
from tidelog.log.delta.actions import Action, Add
from tidelog.log.storage.port import Distant, Storage


def require_stored(storage: Storage, sizes: Mapping[str, int]) -> None:
    """Look each object up, by path, and compare its size in bytes: one `head` an object, many at once behind a network.

    Raises `MissingSegmentError` that names those that are not there, or not as large, and `StorageError`.
    """

    def problem(path: str) -> str | None:
        try:
            found = storage.head(path).size
        except ObjectNotFoundError:
            return f"{path} is not there"
        return None if found == sizes[path] else f"{path} has {found} bytes, and was written with {sizes[path]}"

    look_up = storage.helpers().map if isinstance(storage, Distant) and len(sizes) > 1 else map
    _refuse([found for found in look_up(problem, sizes) if found is not None])


def make_durable(storage: Storage, own: Collection[str], earlier: Iterable[str] = ()) -> None:
    """Sync the objects that a commit brings, by path, and with them those of `earlier` ones, which may be gone by now.

    Raises `MissingSegmentError` that names those of its own that are not there, and `StorageError`.
    """
    missing = storage.sync([*earlier, *own])
    _refuse([f"{path} is not there" for path in missing if path in own])


class Lookup:
    """The look at the segments of one commit, whose entry another process staged: once, whatever races it loses."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._seen: set[str] = set()

    def require(self, actions: Iterable[Action]) -> None:
        """Look up what these actions add. Raises as `require_stored`."""
        adds = {f"{self._folder}/{a.path}": a.size for a in actions if isinstance(a, Add)}
        require_stored(self._storage, {path: size for path, size in adds.items() if path not in self._seen})
        self._seen.update(adds)


def _refuse(problems: list[str]) -> None:
    if problems:
        more = f", and {len(problems) - 1} more like it" if len(problems) > 1 else ""
        raise MissingSegmentError(
            f"A segment of this commit is not in storage: {problems[0]}{more}. Nothing was committed. All processes"
            " that stage for a lake and commit to it must see the same place: a folder that each machine of a cluster"
            " has for itself is none. And nothing but tidelog may delete files below it. Write the records again."
        )

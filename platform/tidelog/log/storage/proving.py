"""The proof of a store: one that does not honour put-if-absent would lose acknowledged records without a word.

Stores whose put-if-absent rests on a server's word (`TakenOnTrust`) are tried before a process changes anything there:
what is there must be refused, and of many writers that create a name at once one may win. decisions/0019 has when, and
what is remembered.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from threading import Barrier
from typing import Final

from tidelog.log.base.clock import Ids
from tidelog.log.base.errors import ObjectNotFoundError, StorageError, StorageUnavailableError, UnsafeStoreError
from tidelog.log.delta import layout
from tidelog.log.storage.orphans import discard
from tidelog.log.storage.port import Storage, TakenOnTrust

RACERS: Final = 8
RACES: Final = 20


def create_first(storage: Storage, path: str, data: bytes, ids: Ids) -> bool:
    """`put_if_absent` of a lake's first object, which proves the store before and on the way.

    Nothing but the object is left. Raises `UnsafeStoreError`, and then nothing is.
    """
    if not isinstance(storage, TakenOnTrust) or storage.proven:
        return storage.put_if_absent(path, data)
    raced = _races(f"{layout.PROOF_PREFIX}{ids.new()}")
    _race(storage, raced)
    discard(storage, raced)
    return _create_twice(storage, path, data)


def require_proof(storage: Storage, folder: str, ids: Ids) -> None:
    """Prove the store unless it is proven, in a table's folder. Raises `UnsafeStoreError`.

    Races are for a folder's first writer at a server: the mark that they leave says that they were, and names the
    server, so that it says nothing of another one that the folder is copied to. Writers may not delete: all stays.
    """
    if not isinstance(storage, TakenOnTrust) or storage.proven:
        return
    mark = f"{folder}/{layout.PROBES_FOLDER}/{sha256(storage.place.encode()).hexdigest()[:16]}"
    if not _is_there(storage, mark):
        _race(storage, _races(f"{mark}-{ids.new()}"))
    _create_twice(storage, mark, b"")


def winners(ways: list[Storage], start: int, path: str, datas: Sequence[bytes]) -> list[bool | None]:
    """Let as many writers as there are `datas` create one object at once: whether each won, None without an answer.

    `ways` reach the same store; writers take them in turn from `start` on. A way that gives no clear answer is left out
    of later races: its place in the list is the first one's. The first is the store as its callers reach it, and what
    it refuses for another reason is raised.
    """
    begin = Barrier(len(datas))

    def run(racer: int) -> bool | None:
        at = (start + racer) % len(ways)
        way = ways[at]
        begin.wait()
        try:
            return way.put_if_absent(path, datas[racer])
        except StorageError as e:
            if way is ways[0] and not isinstance(e, StorageUnavailableError):
                raise
            ways[at] = ways[0]
            return None

    with ThreadPoolExecutor(len(datas)) as racers:
        return list(racers.map(run, range(len(datas))))


def ways_to(storage: Storage) -> list[Storage]:
    """The store as its callers reach it, and by each address that its server's name has."""
    return [storage, *(storage.by_address() if isinstance(storage, TakenOnTrust) else ())]


def _races(prefix: str) -> list[str]:
    return [f"{prefix}/{i:02}" for i in range(RACES)]


def _race(storage: Storage, paths: Sequence[str]) -> None:
    """Create these objects, each by many writers at once, of which one may win."""
    ways = ways_to(storage)
    for i, path in enumerate(paths):
        answers = winners(ways, i * RACERS, path, [b""] * RACERS)
        if answers.count(True) > 1:
            discard(storage, paths)
            raise _unsafe(
                storage,
                f"{answers.count(True)} of {RACERS} writers at once created {path} (of puts with"
                " 'If-None-Match: *' one may succeed, whichever of the server's addresses they go to)",
            )
        if all(answer is None for answer in answers):
            raise StorageUnavailableError(
                f"The store of {storage.uri} gave no clear answer when it was tried with {path}: whether it honours"
                " put-if-absent is not known. Nothing was changed. Try again; 'tidelog check --store"
                f" {storage.uri}' says more."
            )


def _create_twice(storage: Storage, path: str, data: bytes) -> bool:
    """Create the object and once more, which must be refused; that proves the store."""
    created = storage.put_if_absent(path, data)
    # A third time: another program may have deleted the object after the first.
    if created and storage.put_if_absent(path, data) and storage.put_if_absent(path, data):
        discard(storage, [path])
        raise _unsafe(
            storage,
            f"it created {path} again although it was there (a put with 'If-None-Match: *' has to answer 412)",
        )
    if isinstance(storage, TakenOnTrust):
        storage.proven = True
    return created


def _is_there(storage: Storage, path: str) -> bool:
    try:
        storage.get(path)
    except ObjectNotFoundError:
        return False
    return True


def _unsafe(storage: Storage, seen: str) -> UnsafeStoreError:
    place = storage.place if isinstance(storage, TakenOnTrust) else ""
    return UnsafeStoreError(
        f"The store of {storage.uri} ({place}) does not honour put-if-absent: {seen}. A lake needs it: else of two"
        " writers at once one loses records that were acknowledged. Nothing was changed. Use a store with conditional"
        f" puts, or a newer version of this one; 'tidelog check --store {storage.uri}' tries it."
    )

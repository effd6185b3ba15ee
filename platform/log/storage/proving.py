"""The start-up probe: a store that ignores the condition of a put would lose acknowledged records without a word.

Stores whose put-if-absent rests on a server's word (`TakenOnTrust`) are tried before a process changes anything there:
what is there must be refused a second time. decisions/0019 has when, and why it is not remembered.
"""

from contextlib import suppress

from tidelog.log.errors import StorageError, UnsafeStoreError
from tidelog.log.storage.port import Storage, TakenOnTrust


def create_first(storage: Storage, path: str, data: bytes) -> bool:
    """`put_if_absent` of a process's first object in a store, which proves the store on the way.

    Where the store has no proof yet and the object was created, it is created once more, with the same bytes: that
    must be refused. A store that doesn't is left without the object. Raises `UnsafeStoreError`.
    """
    created = storage.put_if_absent(path, data)
    if isinstance(storage, TakenOnTrust) and not storage.proven:
        # A third time: somebody may have deleted the object after the first.
        if created and storage.put_if_absent(path, data) and storage.put_if_absent(path, data):
            with suppress(StorageError):
                storage.delete(path)
            raise UnsafeStoreError(
                f"The store of {storage.uri} ({storage.place}) does not honour put-if-absent: it created {path} again"
                " although it was there (a put with 'If-None-Match: *' has to answer 412). A lake needs it: else of two"
                " writers at once one loses records that were acknowledged. Nothing was changed. Use a store with"
                f" conditional puts, or a newer version of this one; 'tidelog check --store {storage.uri}' tries it."
            )
        storage.proven = True
    return created


def require_proof(storage: Storage, path: str) -> None:
    """Prove the store unless it is proven: `path` is an object for that, which stays. Raises `UnsafeStoreError`."""
    if isinstance(storage, TakenOnTrust) and not storage.proven:
        create_first(storage, path, b"")

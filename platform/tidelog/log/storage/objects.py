"""An object store (S3, Google Cloud Storage, Azure) as a store, through obstore."""

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, BinaryIO, cast

import obstore
from obstore import exceptions as obs
from obstore.store import ObjectStore

from tidelog.log.base.errors import ObjectNotFoundError, StorageUnavailableError
from tidelog.log.base.worker_threads import Helpers
from tidelog.log.storage.nodes import Nodes
from tidelog.log.storage.objects_connecting import Connected, bucket_of, connect
from tidelog.log.storage.objects_errors import (
    RAISED,
    conflict_is_proven,
    failed_or_done,
    failed_to_read,
    gave_no_answer,
    is_not_offered,
    is_past_the_end,
    no_object_to_see,
)
from tidelog.log.storage.options import Secrets
from tidelog.log.storage.port import Linked, ObjectInfo, Storage, check_folder, check_path
from tidelog.log.storage.ranged import Piece, RangedFile, first_range
from tidelog.log.storage.requests import (
    PART_BYTES,
    PUT_AT_MOST_BYTES,
    PUT_PART_BYTES,
    RequestKind,
    Requests,
)

# Calls of one store at once; each thread begins when it is needed.
_HELPERS = 16


class ObjectStorage:
    """The objects below a prefix of a bucket or container, which has to be there already.

    `options` are those of `tidelog.log.storage.option_table` (`lake.s3.region` ...), or obstore's own configuration
    keys of the store and of its HTTP client (`region`, `timeout`, `proxy_url` ...); `environment`, the process's own
    unless given, says what they don't. `store` is a ready obstore store to use instead. Its every put is durable, so
    `sync` does nothing. `requests` counts what the store is asked. `proven` and `place`: see `TakenOnTrust`.

    `uri` is a `parse_address`ed one. Raises `InvalidConfigError`. No message holds a credential.
    """

    is_shared = True

    def __init__(
        self,
        uri: str,
        options: Mapping[str, str] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        store: ObjectStore | None = None,
        requests: Requests | None = None,
    ) -> None:
        self.uri = uri.rstrip("/")
        self.requests = requests or Requests()
        self._helpers = Helpers(_HELPERS, thread_name_prefix="tidelog-store")
        self._bucket: Callable[[], Connected] | None = None
        if store is None:
            told = options or {}, os.environ if environment is None else environment
            connected = connect(uri, *told)
            self._bucket = lambda: connect(bucket_of(uri)[0], *told)
        else:
            connected = Connected(Nodes([store], 0.0), Secrets(), type(store).__name__)
        self._nodes, self._secrets = connected.nodes, connected.secrets
        self.place = connected.place
        self._by_address = connected.by_address
        self._engine_options = connected.engine_options
        self.proven = False

    def __repr__(self) -> str:
        return f"ObjectStorage({self.uri!r})"

    def engine_options(self) -> dict[str, str]:
        """The options by which deltalake and Polars reach the store, credentials among them.

        Of several nodes they know one: that which answered last.
        """
        return dict(self._engine_options[self._nodes.at])

    def by_address(self) -> list["ObjectStorage"]:
        """The store by each address of its server's name, where this has several (`objects_connecting`)."""
        stores = [ObjectStorage(self.uri, store=store, requests=self.requests) for store in self._by_address()]
        for way in stores:
            way._secrets, way.place = self._secrets, self.place
        return stores

    @property
    def several(self) -> bool:
        """Whether it is reached by several nodes' addresses."""
        return self._nodes.several

    # --- reading -------------------------------------------------------------------------------------------

    def get(self, path: str) -> bytes:
        """The object's bytes. Raises `ObjectNotFoundError`."""
        return self._got(path, self._nodes.ask_two)

    def get_from_one(self, path: str) -> bytes:
        """The object's bytes; a single node's word that it is not there counts, see `SeveralNodes`."""
        return self._got(path, self._nodes.ask)

    def _got(self, path: str, ask: Callable[[Callable[[ObjectStore], bytes]], bytes]) -> bytes:
        check_path(path)
        self.requests.note(RequestKind.GET, path)
        with self.failing("read", path):
            data = ask(lambda node: obstore.get(node, path).bytes().to_bytes())
        self.requests.note_received(len(data))
        return data

    def head(self, path: str) -> ObjectInfo:
        """The object's size and time, by one request. Raises `ObjectNotFoundError`."""
        check_path(path)
        return self._info(path, self._head(path))

    def _head(self, path: str) -> Any:
        self.requests.note(RequestKind.HEAD, path)
        with self.failing("read", path):
            return self._nodes.ask_two(lambda node: obstore.head(node, path))

    @staticmethod
    def _info(path: str, meta: Any) -> ObjectInfo:
        return ObjectInfo(path, meta["size"], int(meta["last_modified"].timestamp() * 1000))

    def open(self, path: str, size: int | None = None) -> Any:
        """A file whose reads are one ranged request each, small ones together. Raises `ObjectNotFoundError`.

        Opening it is such a request, too: it brings a small file whole, and the end of a large one of a known size.
        """
        check_path(path)
        start, end = first_range(size or None)
        try:
            return RangedFile(self, path, self._get_range(path, start, end, None))
        except RAISED as error:
            if not is_past_the_end(error):
                raise failed_to_read(self._location(path), error, self._secrets) from None
        # It is empty, or not as large as was said.
        meta = self._head(path)
        return RangedFile(self, path, Piece(0, b"", meta["size"], meta["e_tag"]))

    def read_range(self, path: str, start: int, end: int, e_tag: str | None) -> Piece:
        """The bytes [start, end) of the object that has this tag, if one is given."""
        with self.failing("read", path):
            return self._get_range(path, start, end, e_tag)

    def _get_range(self, path: str, start: int, end: int, e_tag: str | None) -> Piece:
        self.requests.note(RequestKind.RANGED_GET, path)
        wanted: Any = {"range": (start, end), "if_match": e_tag} if e_tag else {"range": (start, end)}

        def ask(node: ObjectStore) -> tuple[Any, bytes]:
            answer = obstore.get(node, path, options=wanted)
            return answer, answer.bytes().to_bytes()

        answer, data = self._nodes.ask_two(ask)
        self.requests.note_received(len(data))
        return Piece(start, data, answer.meta["size"], answer.meta["e_tag"])

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects directly in `folder` whose name sorts after `after`, in lexical order.

        From the start it asks for the folder alone; after a name it asks for all that follows, folders in
        `folder` included, and leaves these out.
        """
        check_folder(folder)
        prefix = f"{folder}/" if folder else ""
        objects, _ = self._listed(folder, prefix + after if after else None)
        infos = [
            self._info(meta["path"], meta)
            for meta in objects
            if "/" not in meta["path"][len(prefix) :] and meta["path"][len(prefix) :] > after
        ]
        return iter(sorted(infos, key=lambda info: info.path))

    def list_folders(self, folder: str) -> list[str]:
        """The names of the folders directly in `folder`, sorted."""
        check_folder(folder)
        _, folders = self._listed(folder, None)
        return sorted(path.rstrip("/").rpartition("/")[2] for path in folders)

    def _listed(self, folder: str, offset: str | None) -> tuple[Sequence[Any], Sequence[str]]:
        """The objects and the folders directly in `folder`; or all objects below it that follow `offset`."""
        objects: Sequence[Any] = ()
        folders: Sequence[str] = ()

        def ask(node: ObjectStore) -> tuple[list[Any], Sequence[str]]:
            if offset:
                stream = obstore.list(node, folder or None, offset=offset, chunk_size=1000)
                return [meta for chunk in stream for meta in chunk], ()
            answer = obstore.list_with_delimiter(node, folder or None)
            return list(answer["objects"]), answer["common_prefixes"]

        try:
            with self.failing("read", folder):
                answers = self._nodes.all_of_two(ask)
                objects = list({meta["path"]: meta for named, _ in answers for meta in named}.values())
                folders = sorted({name for _, names in answers for name in names})
        finally:
            self.requests.note_listed(folder, len(objects) + len(folders))
        return objects, folders

    # --- writing -------------------------------------------------------------------------------------------

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        """Create the object by a conditional put, which the store decides and obstore may repeat."""
        check_path(path)
        if before:
            before()
        self.requests.note(RequestKind.CONDITIONAL_PUT, path, sent=len(data))
        try:
            self._nodes.ask(lambda node: obstore.put(node, path, data, mode="create"), writes=True)
        except obs.AlreadyExistsError as error:
            if not conflict_is_proven(error):
                self._check_there(path)
            return False
        except RAISED as error:
            raise failed_or_done("create", self._location(path), error, self._secrets) from None
        return True

    def _check_there(self, path: str) -> None:
        """S3 answers 409 when two requests meet, and then neither may have stored anything."""
        self.requests.note(RequestKind.HEAD, path)
        try:
            self._nodes.ask_two(lambda node: obstore.head(node, path))
        except RAISED:
            raise no_object_to_see(self._location(path)) from None

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Create or replace the object, durably; a large one in parts, which go at once."""
        check_path(path)
        size = len(data)
        self.requests.note_written(path, size, PUT_AT_MOST_BYTES, PUT_PART_BYTES)
        with self.failing("put", path):
            self._nodes.ask(
                lambda node: obstore.put(
                    node, path, data, use_multipart=size > PUT_AT_MOST_BYTES, chunk_size=PUT_PART_BYTES
                ),
                writes=True,
            )

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A file to write, uploaded in parts; the object appears with the last request."""
        check_path(path)
        node = self._nodes.current
        upload = obstore.open_writer(node, path, buffer_size=PART_BYTES)
        file = _UploadFile(self, path, upload)
        try:
            yield cast(BinaryIO, file)
        except BaseException as error:
            self._nodes.leave(node)
            self.requests.note_aborted(path, file.size, PART_BYTES)
            # Parts that can't be taken back are invisible, and the error that brought us here tells more.
            with suppress(*RAISED):
                upload.__exit__(type(error), error, error.__traceback__)
            raise
        self.requests.note_written(path, file.size, PART_BYTES - 1, PART_BYTES)
        try:
            with self.failing("put", path):
                upload.close()
        except StorageUnavailableError:
            self._nodes.leave(node)
            raise

    def sync(self, paths: Iterable[str]) -> list[str]:  # noqa: ARG002 - nothing is looked at
        """Nothing: what an object store acknowledges is durable."""
        return []

    @cached_property
    def _whole_bucket(self) -> Nodes | None:
        """The store without the lake's prefix; None where only the prefix is known."""
        return None if self._bucket is None else self._bucket().nodes

    def links_from(self, source: Storage) -> bool:
        """Whether the other store's objects are in the same bucket or container, at the same server."""
        return (
            isinstance(source, ObjectStorage)
            and self._whole_bucket is not None
            and source._bucket is not None
            and (source.place, bucket_of(source.uri)[0]) == (self.place, bucket_of(self.uri)[0])
        )

    def link_in(self, source: Storage, paths: Sequence[str]) -> Linked:
        """Have the store copy objects, many at once. One that it does not copy is left undone."""
        above, below = bucket_of(source.uri)[1], bucket_of(self.uri)[1]
        answers = self._helpers.map(lambda path: self._copied(f"{above}{path}", f"{below}{path}", path), paths)
        done = dict(zip(paths, answers, strict=True))
        missing = tuple(path for path, error in done.items() if isinstance(error, FileNotFoundError))
        unlinked = (path for path, error in done.items() if error and not isinstance(error, FileNotFoundError))
        return Linked(missing, tuple(unlinked))

    def _copied(self, source: str, target: str, path: str) -> BaseException | None:
        """None, or why the store has not copied an object. Raises `StorageError` where it gave no answer."""
        check_path(path)
        self.requests.note(RequestKind.COPY, path)
        assert self._whole_bucket is not None
        try:
            self._whole_bucket.ask(lambda node: obstore.copy(node, source, target), writes=True)
        except RAISED as error:
            if gave_no_answer(error) and not is_not_offered(error):
                raise failed_or_done("put", self._location(path), error, self._secrets) from None
            return error
        return None

    def delete(self, path: str) -> None:
        """Delete the object; one that is not there is no error."""
        check_path(path)
        self.requests.note(RequestKind.DELETE, path)
        try:
            self._nodes.ask(lambda node: obstore.delete(node, path), writes=True)
        except RAISED as error:
            location = self._location(path)
            if not isinstance(failed_to_read(location, error, self._secrets), ObjectNotFoundError):
                raise failed_or_done("delete", location, error, self._secrets) from None

    def helpers(self) -> Helpers:
        """Threads to call the store from, shared by all callers of this one."""
        return self._helpers

    @contextmanager
    def failing(self, action: str, path: str) -> Iterator[None]:
        """A block whose errors of obstore become the port's: those of a "read", or of an action that writes."""
        try:
            yield
        except RAISED as error:
            location = self._location(path)
            if action == "read":
                raise failed_to_read(location, error, self._secrets) from None
            raise failed_or_done(action, location, error, self._secrets) from None

    def _location(self, path: str) -> str:
        return f"{self.uri}/{path}" if path else self.uri


class _UploadFile(io.RawIOBase):
    """The file behind `create`; closing it doesn't end the upload, the `with` block's end does."""

    def __init__(self, storage: ObjectStorage, path: str, upload: Any) -> None:
        self._storage = storage
        self._path = path
        self._upload = upload
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        with self._storage.failing("put", self._path):
            self._upload.write(data)
        nbytes = memoryview(data).nbytes
        self.size += nbytes
        return nbytes

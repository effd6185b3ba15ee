"""A small S3 server inside the test's process, which does wrong what a test asks it to. It checks no signatures."""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

KEYS = {"lake.s3.access.key.id": "AKIASMALLSERVER", "lake.s3.secret.access.key": "smallsecretsmallsecret"}


@dataclass
class SmallS3:
    """Objects by "/bucket/key", and what is wrong with the server.

    `ignores_conditions`: an object that is there is put over. `looks_early`: for objects of these names, whether one is
    there is looked at before any of `at_once` writers stores his, so that all find none. `forgets`: objects of these
    names are taken and not kept. `permits` says whether an action of IAM on a bucket, or on "bucket/key", is allowed.
    `now` is when all objects were put. `misses`: objects of these names are not there for readers and listings, as at a
    node that has just come back; a conditional put, which all nodes decide, finds them. `away`: it answers 503.
    `unwritable`: it reads and takes no writes, as a store does of which a majority of nodes is gone.
    """

    ignores_conditions: bool = False
    looks_early: re.Pattern[str] | None = None
    at_once: threading.Barrier | None = None
    forgets: re.Pattern[str] | None = None
    misses: re.Pattern[str] | None = None
    away: bool = False
    unwritable: bool = False
    now: Callable[[], datetime] = lambda: datetime(2026, 11, 21, tzinfo=UTC)
    permits: Callable[[str, str], bool] = lambda _action, _resource: True
    objects: dict[str, bytes] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def options(self) -> dict[str, str]:
        return {"lake.s3.endpoint": self.url, "lake.s3.region": "us-east-1", **KEYS}

    def read(self, path: str) -> bytes | None:
        return None if self.misses and self.misses.search(path) else self.objects.get(path)

    def put(self, path: str, data: bytes, absent: bool) -> bool:
        raced = absent and self.looks_early is not None and self.looks_early.search(path) is not None
        with self.lock:
            found = path in self.objects
        if raced and self.at_once is not None:
            self.at_once.wait(10)
        with self.lock:
            if not raced:  # looks and stores in one step
                found = path in self.objects
            if absent and found and not self.ignores_conditions:
                return False
            if not (self.forgets and self.forgets.search(path)):
                self.objects[path] = data
            return True

    def listing(self, bucket: str, query: dict[str, str]) -> bytes:
        prefix, after = query.get("prefix", ""), query.get("start-after", "")
        with self.lock:
            seen = [path for path in self.objects if self.read(path) is not None]
            keys = sorted(path.removeprefix(f"{bucket}/") for path in seen if path.startswith(f"{bucket}/"))
            sizes = {key: len(self.objects[f"{bucket}/{key}"]) for key in keys}
        keys = [key for key in keys if key.startswith(prefix) and key > after]
        folders: set[str] = set()
        if query.get("delimiter"):
            below = {key: key[len(prefix) :] for key in keys}
            folders = {prefix + rest.partition("/")[0] + "/" for rest in below.values() if "/" in rest}
            keys = [key for key in keys if "/" not in below[key]]
        now = self.now().strftime("%Y-%m-%dT%H:%M:%S.000Z")
        files = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{now}</LastModified><Size>{sizes[key]}</Size></Contents>"
            for key in keys
        )
        shared = "".join(f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in sorted(folders))
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{files}{shared}</ListBucketResult>".encode()


@contextmanager
def small_s3(at: tuple[str, int] = ("127.0.0.1", 0), **wrong: object) -> Iterator[SmallS3]:
    """A running server at an address and a port, 0 for a free one; `wrong`: how it fails, fields of `SmallS3`."""
    small = SmallS3(**wrong)  # type: ignore[arg-type]

    class Handler(_Handler):
        s3 = small

    server = ThreadingHTTPServer(at, Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    small.url = f"http://{at[0]}:{server.server_port}"
    try:
        yield small
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one answer in one packet, else each waits for the other side's delayed acknowledgement
    s3: SmallS3

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.s3.away or (self.s3.unwritable and self.command in ("PUT", "POST", "DELETE")):
            self.s3.seen.append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self._refuse(503, "ServerNotInitialized" if self.s3.away else "SlowDownWrite")
            return False
        asked = _action(self.command, self.path)
        if asked is None or self.s3.permits(*asked):
            return True
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self._refuse(403, "AccessDenied")
        return False

    def _asked(self) -> tuple[str, dict[str, str], bytes]:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.s3.seen.append(f"{self.command} {self.path}")
        return unquote(parts.path), query, self.rfile.read(int(self.headers.get("content-length") or 0))

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")
        self.wfile.flush()

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code></Error>".encode())

    def do_GET(self) -> None:
        path, query, _ = self._asked()
        if "list-type" in query:
            return self._answer(200, self.s3.listing(path.rstrip("/"), query))
        data = self.s3.read(path)
        if data is None:  # only a role that may list learns that it is not there
            if not self.s3.permits("s3:ListBucket", path[1:].partition("/")[0]):
                return self._refuse(403, "AccessDenied")
            return self._refuse(404, "NoSuchKey")
        facts = {"ETag": f'"{md5(data).hexdigest()}"', "Last_Modified": formatdate(usegmt=True)}
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range") or "")
        if asked is None:
            return self._answer(200, data, **facts)
        start, end = int(asked[1]), min(int(asked[2]) + 1, len(data))
        if start >= len(data):
            return self._refuse(416, "InvalidRange")
        return self._answer(206, data[start:end], **facts, Content_Range=f"bytes {start}-{end - 1}/{len(data)}")

    do_HEAD = do_GET  # noqa: N815

    def do_PUT(self) -> None:
        path, query, data = self._asked()
        if "uploadId" in query:
            self.s3.uploads[query["uploadId"]][int(query["partNumber"])] = data
        elif not self.s3.put(path, data, self.headers.get("if-none-match") == "*"):
            return self._refuse(412, "PreconditionFailed")
        return self._answer(200, ETag=f'"{md5(data).hexdigest()}"')

    def do_POST(self) -> None:
        path, query, data = self._asked()
        if "delete" in query:
            keys = re.findall(r"<Key>(.*?)</Key>", data.decode())
            denied = "<Error><Key>{}</Key><Code>AccessDenied</Code><Message>Denied</Message></Error>"
            told = ""
            for key in keys:
                if self.s3.permits("s3:DeleteObject", f"{path.strip('/')}/{key}"):
                    self.s3.objects.pop(f"{path.rstrip('/')}/{key}", None)
                    told += f"<Deleted><Key>{key}</Key></Deleted>"
                else:
                    told += denied.format(key)
            return self._answer(200, f"<DeleteResult>{told}</DeleteResult>".encode())
        if "uploads" in query:
            upload = f"u{len(self.s3.uploads)}"
            self.s3.uploads[upload] = {}
            words = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            return self._answer(200, words.encode())
        parts = self.s3.uploads.pop(query["uploadId"])
        self.s3.put(path, b"".join(parts[i] for i in sorted(parts)), absent=False)
        return self._answer(200, b'<CompleteMultipartUploadResult><ETag>"1"</ETag></CompleteMultipartUploadResult>')

    def do_DELETE(self) -> None:
        path, query, _ = self._asked()
        if "uploadId" in query:
            self.s3.uploads.pop(query["uploadId"], None)
        else:
            self.s3.objects.pop(path, None)
        self._answer(204)

    def log_message(self, *args: object) -> None:
        pass


def _action(method: str, target: str) -> tuple[str, str] | None:
    """The action that IAM decides about a request, and its resource; None for many deletions, which name their own."""
    parts = urlsplit(target)
    query, resource = parse_qs(parts.query, keep_blank_values=True), unquote(parts.path).strip("/")
    if method == "POST" and "delete" in query:
        return None
    if "list-type" in query:
        return "s3:ListBucket", resource
    if method == "DELETE":
        return "s3:AbortMultipartUpload" if "uploadId" in query else "s3:DeleteObject", resource
    return "s3:PutObject" if method in ("PUT", "POST") else "s3:GetObject", resource


@contextmanager
def small_nodes(count: int = 3) -> Iterator[list[SmallS3]]:
    """Nodes of one store: all have the same objects, and each its own faults."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(small_s3()) for _ in range(count)]
        for node in nodes[1:]:
            node.objects, node.uploads, node.lock = nodes[0].objects, nodes[0].uploads, nodes[0].lock
        yield nodes


def options_of(nodes: Sequence[SmallS3], **more: str) -> dict[str, str]:
    """A lake's options that list all nodes; `more`: options of `lake.store`, `_` for `.`."""
    listed = {"lake.s3.endpoint": ",".join(node.url for node in nodes)}
    return {**nodes[0].options, **listed, **{f"lake.store.{k.replace('_', '.')}": v for k, v in more.items()}}

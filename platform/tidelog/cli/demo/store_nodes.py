"""Four nodes of a replicated S3 store on this machine: MinIO's server, a process and a folder each.

Each object is on all four, in parts of which any two are enough to read it and three must be there for a write. So the
store goes on with one node gone, and loses nothing with two.
"""

import hmac
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import obstore
from obstore.store import S3Store

from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.clock import SystemClock, SystemIds

NODES = 4
BUCKET = "lakes"
REGION = "us-east-1"
PACKAGE = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c"
STARTS_WITHIN_S = 60.0
_LOOKS_EVERY_S = 0.1
# What the server keeps of its own in a node's folder, beside the buckets.
_OWN = ".minio.sys"


def find_program() -> Path:
    """MinIO's server: beside this Python, or on the path. Raises `UsageProblemError` that says how to get it."""
    beside = Path(sys.executable).parent / "minio"
    if beside.exists():
        return beside
    if on_path := shutil.which("minio"):
        return Path(on_path)
    go = "" if shutil.which("go") else " Go, which builds it, is not here either: https://go.dev/dl."
    raise UsageProblemError(
        f"MinIO's server is not here, of which four run as the store's nodes: 'go install {PACKAGE}' builds it in two"
        f" minutes, and so does 'make demo-replicas' in the repository.{go}"
    )


def own_address() -> str:
    """This machine's address, which is not a loopback one: MinIO takes no others for nodes. Nothing is sent.

    Raises `UsageProblemError` where there is none.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address of documentation (RFC 5737)
            address = str(probe.getsockname()[0])
        except OSError:
            address = "127.0.0.1"
    if address.startswith("127."):
        raise UsageProblemError(
            "This machine has no address but 127.0.0.1, and MinIO's nodes need one to reach each other. Connect it to a"
            " network, or give it an address (Linux: ip addr add 10.77.0.1/32 dev lo; ip route add default dev lo)."
        )
    return address


@dataclass
class _Node:
    port: int
    folder: Path
    log: Path
    process: subprocess.Popen[bytes] | None = None


class StoreNodes:
    """The nodes, by number from 0 on. Use it as a `with` block: at its end all are killed; their folders stay."""

    def __init__(self, folder: Path, count: int = NODES) -> None:
        self.folder = folder
        self.address = own_address()
        ids = SystemIds()
        self.access_key_id = f"tidelog{ids.secret(4).hex()}"
        self.secret_access_key = ids.secret(16).hex()
        self._program = find_program()
        ports = _free_ports(self.address, count)
        self._nodes = [
            _Node(port, folder / f"node-{i + 1}", folder / f"node-{i + 1}.log") for i, port in enumerate(ports)
        ]

    def __enter__(self) -> "StoreNodes":
        for number in range(len(self._nodes)):
            self.start(number)
        try:
            self._create_bucket()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def endpoints(self) -> list[str]:
        """The nodes' addresses."""
        return [f"http://{self.address}:{node.port}" for node in self._nodes]

    @property
    def ports(self) -> list[int]:
        """Their ports at `address`."""
        return [node.port for node in self._nodes]

    @property
    def pids(self) -> list[int]:
        """Their processes, as far as they were started."""
        return [node.process.pid for node in self._nodes if node.process is not None]

    def options(self, endpoints: Sequence[str] = ()) -> dict[str, str]:
        """A lake's options to reach the store by all nodes, or by other endpoints (proxies before them)."""
        return {
            "lake.s3.endpoint": ",".join(endpoints or self.endpoints),
            "lake.s3.region": REGION,
            "lake.s3.access.key.id": self.access_key_id,
            "lake.s3.secret.access.key": self.secret_access_key,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The same as AWS's variables."""
        return {
            "AWS_ENDPOINT_URL": ",".join(self.endpoints),
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
        }

    def start(self, number: int) -> None:
        """Start a node, which goes on with what is in its folder."""
        node = self._nodes[number]
        node.folder.mkdir(parents=True, exist_ok=True)
        where = [f"http://{self.address}:{one.port}{one.folder}" for one in self._nodes]
        settings = {
            "MINIO_ROOT_USER": self.access_key_id,
            "MINIO_ROOT_PASSWORD": self.secret_access_key,
            "MINIO_REGION": REGION,
            "MINIO_BROWSER": "off",
            "MINIO_CI_CD": "1",  # or it takes no folders of the machine's own disk
        }
        with open(node.log, "ab") as log:
            node.process = subprocess.Popen(  # noqa: S603 - the program that was looked for
                [str(self._program), "server", "--quiet", "--address", f"{self.address}:{node.port}", *where],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **settings},
                start_new_session=True,  # ^C is for the demo, which then stops it
            )

    def kill(self, number: int) -> None:
        """As a power cut does: SIGKILL."""
        process = self._nodes[number].process
        if process is not None:
            process.kill()
            process.wait()

    def freeze(self, number: int) -> None:
        """Let a node take connections and do nothing: SIGSTOP."""
        self._signal(number, signal.SIGSTOP)

    def thaw(self, number: int) -> None:
        """Let it go on."""
        self._signal(number, signal.SIGCONT)

    def wipe(self, number: int) -> None:
        """Kill a node and delete all that it stored: its disk is lost, an empty one takes its place."""
        self.kill(number)
        shutil.rmtree(self._nodes[number].folder)

    def is_up(self, number: int) -> bool:
        """Whether a node takes writes: its cluster, as it sees it, has enough nodes for them."""
        try:
            with urllib.request.urlopen(f"{self.endpoints[number]}/minio/health/cluster", timeout=2) as answer:  # noqa: S310 - http
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def await_up(self, numbers: Sequence[int] | None = None) -> None:
        """Wait until these nodes, or all, take writes. Raises `UsageProblemError` when it takes too long."""
        wanted = range(len(self._nodes)) if numbers is None else numbers
        _await(lambda: all(self.is_up(number) for number in wanted), "take writes", self.folder)

    def heal(self, number: int) -> None:
        """Have the nodes give each other what one of them lacks, in the background; asked of this node.

        Left alone they do so for an object in a second or so, and for some not before their scanner comes by: a store
        in which nodes go and come back needs this once each time. It is what `mc admin heal -r` asks.
        """
        wanted = {"recursive": True, "dryRun": False, "remove": False, "recreate": False, "scanMode": 1}
        path, query = f"/minio/admin/v3/heal/{BUCKET}", "forceStart=true"
        self._admin(number, path, query, json.dumps(wanted).encode())

    def _admin(self, number: int, path: str, query: str, body: bytes) -> None:
        """A request to MinIO's administration, signed as S3's are (AWS Signature Version 4)."""
        now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        host, digest = f"{self.address}:{self.ports[number]}", sha256(body).hexdigest()
        headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": now}
        names = ";".join(headers)
        asked = ["POST", path, query, *(f"{name}:{value}" for name, value in headers.items()), "", names, digest]
        text = "\n".join(["AWS4-HMAC-SHA256", now, scope, sha256("\n".join(asked).encode()).hexdigest()])
        key = f"AWS4{self.secret_access_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        who = f"AWS4-HMAC-SHA256 Credential={self.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
        request = urllib.request.Request(
            f"http://{host}{path}?{query}", body, {**headers, "authorization": who}, method="POST"
        )
        urllib.request.urlopen(request, timeout=30).close()  # noqa: S310 - http

    def behind(self, number: int) -> set[str]:
        """Objects, by path, that two other nodes keep and this one does not."""
        kept: dict[str, int] = {}
        for other, node in enumerate(self._nodes):
            if other != number:
                for path in _objects(node.folder):
                    kept[path] = kept.get(path, 0) + 1
        own = set(_objects(self._nodes[number].folder))
        return {path for path, nodes in kept.items() if nodes >= 2 and path not in own}

    def stop(self) -> None:
        """Kill all."""
        for number in range(len(self._nodes)):
            self.thaw(number)
            self.kill(number)

    def _signal(self, number: int, what: signal.Signals) -> None:
        process = self._nodes[number].process
        if process is not None:
            with suppress(ProcessLookupError):
                process.send_signal(what)

    def _create_bucket(self) -> None:
        self.await_up()
        store = S3Store(
            BUCKET,
            endpoint=self.endpoints[0],
            region=REGION,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            client_options={"allow_http": True},
        )
        # A put of the bucket's own address, signed like an object's, creates it.
        url = obstore.sign(store, "PUT", "", timedelta(minutes=5))
        request = urllib.request.Request(url, method="PUT")  # noqa: S310 - http
        try:
            urllib.request.urlopen(request, timeout=30).close()  # noqa: S310 - http
        except urllib.error.HTTPError as error:
            if error.code != 409:  # it is there already
                raise


def _objects(folder: Path) -> Iterator[str]:
    """The objects below a node's folder, each of which is a folder with a file of its metadata."""
    for at, folders, files in os.walk(folder):
        if _OWN in folders:
            folders.remove(_OWN)
        if "xl.meta" in files:
            folders.clear()
            yield os.path.relpath(at, folder)


def _await(there: Callable[[], bool], what: str, folder: Path) -> None:
    clock = SystemClock()
    until_s = clock.elapsed_s() + STARTS_WITHIN_S
    while not there():
        if clock.elapsed_s() > until_s:
            raise UsageProblemError(
                f"The store's nodes do not {what} within {STARTS_WITHIN_S:.0f} s. What they say is in"
                f" {folder}/node-*.log."
            )
        clock.sleep(_LOOKS_EVERY_S)


def _free_ports(address: str, count: int) -> list[int]:
    taken = [socket.create_server((address, 0)) for _ in range(count)]
    try:
        return [int(one.getsockname()[1]) for one in taken]
    finally:
        for one in taken:
            one.close()

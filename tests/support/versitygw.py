"""A real S3 server on loopback: versitygw over a folder, one for each process of tests.

`make setup` installs it where Go is. Tests that ask for the fixture `s3` skip where neither Go nor the server is, and
fail where Go is and the server isn't, and in CI.
"""

import atexit
import itertools
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store
from support.tools import BIN, missing

from tidelog.log.storage import ObjectStorage, open_storage

BINARY = BIN / "versitygw"
REGION = "us-east-1"
BROKEN_SETUP = f"Go is there, but {BINARY} is not: run make setup, which installs it."

# The server ends, and its folder goes, when its starter's end of the pipe closes, however the starter ends.
_RUN = """
folder=$1; shift
exec 3<&0
"$@" </dev/null 3<&- & server=$!
{ read -r _ <&3; kill -9 $server; rm -rf "$folder"; } & watcher=$!
wait $server
wait $watcher
"""
_STARTS_WITHIN_S = 30.0
_TRIES = 5


@dataclass(frozen=True)
class S3Place:
    """An empty place on the server for a lake: its address, and every way to configure it.

    `options` are those of a lake, `environment` the AWS variables.
    """

    uri: str
    endpoint: str
    access_key_id: str
    secret_access_key: str
    folder: Path = field(repr=False)  # of the bucket, on the server's disk
    region: str = REGION

    @property
    def options(self) -> dict[str, str]:
        return {
            "lake.s3.endpoint": self.endpoint,
            "lake.s3.region": self.region,
            "lake.s3.access.key.id": self.access_key_id,
            "lake.s3.secret.access.key": self.secret_access_key,
        }

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
        }

    def storage(self) -> ObjectStorage:
        storage = open_storage(self.uri, self.options)
        assert isinstance(storage, ObjectStorage)
        return storage


class Server:
    """A running server. Its buckets are folders, so that a test needs no client to make one."""

    def __init__(self) -> None:
        self.access_key_id = "tidelog" + secrets.token_hex(6)
        self.secret_access_key = secrets.token_hex(20)
        self.buckets = itertools.count(1)
        self.endpoint = ""
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)
        words = [self._start() for _ in range(_TRIES) if not self.endpoint]
        if not self.endpoint:
            raise RuntimeError(f"versitygw does not start; it says:\n{''.join(words)}")

    def _start(self) -> str:
        """Set `endpoint` once it answers; else (another process took the port, say) return its words."""
        self.root = Path(tempfile.mkdtemp(prefix="versitygw-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        (self.root / "buckets/ready").mkdir(parents=True)
        options = ["--port", address, "--region", REGION, "--quiet", "--keep-alive"]
        keys = {"ROOT_ACCESS_KEY": self.access_key_id, "ROOT_SECRET_KEY": self.secret_access_key}
        with (self.root / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", _RUN, "sh", str(self.root), str(BINARY), *options, "posix", str(self.root / "buckets")],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **keys},
                start_new_session=True,  # ^C is for the tests, which then stop it
            )
        deadline = time.monotonic() + _STARTS_WITHIN_S
        while time.monotonic() < deadline:
            if self._answers(address):
                self.endpoint = f"http://{address}"
                return ""
            if "failed" in (words := (self.root / "log").read_text(errors="replace")):
                break
            time.sleep(0.01)
        self._end()
        return words

    def _answers(self, address: str) -> bool:
        """Whether it is this very server that answers: no other knows the keys."""
        host, port = address.split(":")
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))):
                return False
        try:
            obstore.list_with_delimiter(
                S3Store(
                    "ready",
                    endpoint=f"http://{address}",
                    region=REGION,
                    access_key_id=self.access_key_id,
                    secret_access_key=self.secret_access_key,
                    client_options={"allow_http": True},
                    retry_config={"max_retries": 0},
                )
            )
        except obstore.exceptions.BaseError:
            return False
        return True

    def _end(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(_STARTS_WITHIN_S)
            self._process = None

    def stop(self) -> None:
        """End the server, which removes what it stored."""
        atexit.unregister(self.stop)
        self._end()

    def place(self, prefix: str = "lake") -> S3Place:
        """A new bucket, and a prefix in it."""
        bucket = f"bucket-{next(self.buckets)}"
        folder = self.root / "buckets" / bucket
        folder.mkdir()
        return S3Place(f"s3://{bucket}/{prefix}", self.endpoint, self.access_key_id, self.secret_access_key, folder)


@cache
def server() -> Server:
    """This process's server, which runs to its end. Skips or fails the test where there is none to start."""
    why_not()
    return Server()


def why_not() -> None:
    """Skip where there can be no server, fail where there should be one."""
    if BINARY.exists():
        return
    if shutil.which("go"):
        pytest.fail(BROKEN_SETUP, pytrace=False)
    missing("versitygw", "a lake on S3")


@contextmanager
def fresh_place() -> Iterator[S3Place]:
    """A place of its own, removed at the end."""
    place = server().place()
    try:
        yield place
    finally:
        shutil.rmtree(place.folder, ignore_errors=True)


@contextmanager
def in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """The variables set in this process, and no other AWS variable."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def s3() -> Iterator[S3Place]:
    """An empty place on a real S3 server."""
    with fresh_place() as place:
        yield place

"""A PostgreSQL server in a folder of its own, to be stopped and killed.

Its programs are those of Debian's package postgresql, or, where that is not installed, binaries of Maven's repository.
It refuses to run as root: then it runs as the user that its package made, else as the one without rights.
"""

import os
import platform
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg2
import psycopg2.extras
from support.kafka_clients import KafkaClient, fetch_jars, install
from support.tools import TOOLS, missing
from support.waiting import PATIENCE_S, eventually

USER = "postgres"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "wal_level": "logical",
    "max_wal_senders": "10",
    "max_replication_slots": "10",
    "shared_buffers": "32MB",
}


class Postgres:
    """A server. `host`, `port`, user `postgres` without a password, database `postgres`."""

    host = "127.0.0.1"

    def __init__(self, programs: Path, folder: Path, port: int, settings: Mapping[str, str]) -> None:
        self.port = port
        self._programs, self._folder = programs, folder
        self._settings = {**_SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """As libpq takes it."""
        return f"host={self.host} port={self.port} user={USER} dbname=postgres"

    @property
    def log(self) -> str:
        """What the server has said."""
        return (self._folder / "server.log").read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        told = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        command = [self._programs / "postgres", "-D", self._folder / "data", "-k", self._folder, "-p", str(self.port)]
        with open(self._folder / "server.log", "ab") as log:
            process = subprocess.Popen(
                [*map(str, command), *told], stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=_user()
            )
        self._process = process

        def answers() -> bool:
            assert process.poll() is None, self.log[-3000:]
            try:
                psycopg2.connect(self.dsn).close()
            except psycopg2.OperationalError:
                return False
            return True

        eventually(answers, "PostgreSQL answers")

    def stop(self, number: int = signal.SIGINT) -> None:
        """End the server: by SIGINT it disconnects its clients, by SIGQUIT it dies as by a crash."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)
            self._process = None

    def run(self, statements: str, database: str = "postgres") -> str:
        """Run SQL, each statement in a transaction of its own; its rows as psql shows them, columns by tabs."""
        lines: list[str] = []
        try:
            connection = psycopg2.connect(
                host=self.host, port=self.port, user=USER, dbname=database, options="-c client_min_messages=error"
            )
            try:
                connection.autocommit = True
                psycopg2.extras.register_default_json(connection, loads=str)
                psycopg2.extras.register_default_jsonb(connection, loads=str)
                with connection.cursor() as cursor:
                    for statement in filter(str.strip, _STATEMENT.findall(statements)):
                        cursor.execute(statement)
                        if cursor.description is not None:
                            lines += ("\t".join(map(_shown, row)) + "\n" for row in cursor.fetchall())
            finally:
                connection.close()
        except psycopg2.Error as error:
            raise AssertionError(str(error)[-3000:]) from error
        return "".join(lines)


# What is before a semicolon outside of texts and comments.
_STATEMENT = re.compile(r"(?:'[^']*'|\$\$.*?\$\$|--[^\n]*|[^;])++", re.DOTALL)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    return "" if value is None else str(value)


@contextmanager
def running_postgres(settings: Mapping[str, str] | None = None, programs: Path | None = None) -> Iterator[Postgres]:
    """A new server with these settings, until the end of the block. Skips where PostgreSQL is not; in CI it fails.

    `programs`: the folder of its programs; this machine's newest unless given.
    """
    programs = programs or _programs()
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        folder, user = Path(name), _user()
        if user is not None:
            os.chown(folder, user, -1)
        made = [programs / "initdb", "-D", folder / "data", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([*made, "--locale=C.UTF-8"], check=True, capture_output=True, user=user, cwd=folder)
        with socket.socket() as free:
            free.bind((Postgres.host, 0))
            port = free.getsockname()[1]
        server = Postgres(programs, folder, port, settings or {})
        try:
            server.start()
            yield server
        finally:
            server.stop()


def embedded() -> Path:
    """The folder of the programs of Maven's repository, fetched when they are not here."""
    if platform.machine() not in _ARTIFACTS or shutil.which("java") is None:
        missing("postgres", "PostgreSQL")
    install(_EMBEDDED)
    return _EMBEDDED.folder / "bin"


def _make_embedded(client: KafkaClient, folder: Path) -> None:
    name = f"embedded-postgres-binaries-linux-{_ARTIFACTS[platform.machine()]}"
    fetch_jars(folder, "io.zonky.test.postgres", name, client.version, transitive=False)
    (jar,) = folder.glob("*.jar")
    with zipfile.ZipFile(jar) as archive:
        (packed,) = (one for one in archive.namelist() if one.endswith(".txz"))
        with archive.open(packed) as file, tarfile.open(fileobj=file, mode="r:xz") as unpacked:
            unpacked.extractall(folder, filter="data")
    jar.unlink()


_ARTIFACTS = {"x86_64": "amd64", "aarch64": "arm64v8"}
_EMBEDDED = KafkaClient("postgres", "15.15.0", "java", _make_embedded, lambda _: ())


def _programs() -> Path:
    """The folder of the newest server on this machine."""
    found = TOOLS["postgres"].see()
    return Path(found).resolve().parent if found is not None else embedded()


def _user() -> int | None:
    """Whose process the server is, where that is not ours."""
    if os.geteuid() != 0:
        return None
    made_by_the_package = [one.pw_uid for one in pwd.getpwall() if one.pw_name == USER]
    return made_by_the_package[0] if made_by_the_package else pwd.getpwnam("nobody").pw_uid

"""Kafka clients of other languages, and old ones: how each is installed and called for a round trip.

A round trip (`tests/clients/`) sends records by every codec of the client and reads them back as a member of a group.
Its arguments: the address, the topic, the group, the codecs with commas between, how many records for each, and a
transactional id or "". With one, records are sent in two transactions, of which the first is aborted. It prints what it
read, a JSON document a line.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.tools import ROOT, missing

SOURCES = ROOT / "tests/clients"
STORE = ROOT / ".venv/clients"
ALL_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_TIMESTAMP = 1_700_000_000_000
_LIMIT_S = 600
# Of what is built: Helm is some 1,000 packages of Go.
_BUILD_LIMIT_S = 1_800


@dataclass(frozen=True)
class KafkaClient:
    """A client of one version. `program`: what must be on the machine; `make`: installs it into an empty folder."""

    name: str
    version: str
    program: str
    make: Callable[["KafkaClient", Path], None]
    command: Callable[[Path], Sequence[str | Path]]
    codecs: tuple[str, ...] = ALL_CODECS
    transactions: bool = True
    artifact: str = ""
    needs: tuple[str, ...] = field(default=())

    @property
    def folder(self) -> Path:
        """Where it is installed."""
        return STORE / f"{self.name}-{self.version}"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def run_command(command: Sequence[str | Path], folder: Path, **environment: str) -> None:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_BUILD_LIMIT_S,
        check=False,
    )
    if done.returncode:
        words = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{words}")


def fetch_jars(folder: Path, *artifact: str, transitive: bool) -> None:
    """Spark's Ivy fetches jars from Maven's repository."""
    import pyspark

    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    retrieve = ["-retrieve", "[artifact]-[revision].[ext]", "-types", "jar", "bundle", "-confs", "default"]
    if not transitive:
        retrieve.append("-notransitive")
    run_command(["java", "-jar", ivy, "-dependency", *artifact, *retrieve, "-cache", folder / "cache"], folder)
    shutil.rmtree(folder / "cache")


def _make_tools(client: KafkaClient, folder: Path) -> None:
    """Kafka's tools, and what kafka-transactions needs of their other jars."""
    fetch_jars(folder, "org.apache.kafka", "kafka-clients", client.version, transitive=True)
    for group, name, version in (
        ("org.apache.kafka", "kafka-tools", client.version),
        ("org.apache.kafka", "kafka-server-common", client.version),
        ("net.sourceforge.argparse4j", "argparse4j", "0.7.0"),
    ):
        fetch_jars(folder, group, name, version, transitive=False)


def _tools(folder: Path) -> Sequence[str | Path]:
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}/*"]
    return [*java, "org.apache.kafka.tools.TransactionsCommand"]


def _make_access_tools(client: KafkaClient, folder: Path) -> None:
    """Kafka's tools, with all that kafka-configs loads of a broker."""
    fetch_jars(folder, "org.apache.kafka", "kafka_2.13", client.version, transitive=True)
    fetch_jars(folder, "org.apache.kafka", "kafka-tools", client.version, transitive=False)


def _access_tools(folder: Path) -> Sequence[str | Path]:
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}/*"]
    return [*java, Path(__file__).with_name("KafkaTools.java")]


def _make_java(client: KafkaClient, folder: Path) -> None:
    fetch_jars(folder, "org.apache.kafka", "kafka-clients", client.version, transitive=True)
    run_command(["javac", "-cp", "*", "-d", ".", SOURCES / "java/RoundTrip.java"], folder)


def _java(folder: Path) -> Sequence[str | Path]:
    return ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:{folder}/*", "RoundTrip"]


def _make_go(client: KafkaClient, folder: Path) -> None:
    shutil.copytree(SOURCES / client.name, folder / "source")
    run_command(["go", "build", "-o", folder / "roundtrip", "."], folder / "source")
    shutil.rmtree(folder / "source")


def _make_node(client: KafkaClient, folder: Path) -> None:
    for path in (SOURCES / "node").iterdir():
        shutil.copy(path, folder)
    run_command(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"kafkajs@{client.version}"], folder)


def _make_python(client: KafkaClient, folder: Path) -> None:
    run_command([client.program, "-m", "venv", "venv"], folder)
    packages = (f"{client.artifact}=={client.version}", *client.needs)
    pip = ("venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")
    run_command([*pip, "--only-binary=:all:", *packages], folder)


def _in_venv(script: str) -> Callable[[Path], Sequence[str | Path]]:
    return lambda folder: [folder / "venv/bin/python", SOURCES / "python" / script]


def _here(script: str) -> Callable[[Path], Sequence[str | Path]]:
    return lambda _: [sys.executable, SOURCES / "python" / script]


def _nothing(_client: KafkaClient, _folder: Path) -> None:
    """It comes with the extra `dev`."""


NEWEST = (
    KafkaClient("java", "4.2.0", "javac", _make_java, _java),
    KafkaClient("franz", "1.20.4", "go", _make_go, lambda folder: [folder / "roundtrip"]),
    KafkaClient(
        "kafkajs", "2.2.4", "npm", _make_node, lambda folder: ["node", folder / "roundtrip.js"], codecs=("none", "gzip")
    ),
    KafkaClient("aiokafka", "current", sys.executable, _nothing, _here("aiokafka_roundtrip.py")),
    KafkaClient("confluent-kafka", "current", sys.executable, _nothing, _here("confluent_roundtrip.py")),
)
# kafka-transactions, which makes no round trip.
TOOLS = KafkaClient("kafka-tools", "4.2.0", "java", _make_tools, _tools)
# kafka-acls and kafka-configs, which take commands line by line.
ACCESS_TOOLS = KafkaClient("kafka-access-tools", "4.2.0", "java", _make_access_tools, _access_tools)
_CODECS_OF_PYTHON = ("python-snappy==0.7.3", "lz4==4.3.3", "zstandard==0.22.0")


def _python(version: str) -> str:
    """A Python of this version, as pyenv keeps it where it does; else the name that it has on a PATH."""
    kept = sorted((Path.home() / ".pyenv/versions").glob(f"{version}.*/bin/python{version}"))
    return str(kept[-1]) if kept else f"python{version}"


OLD = (
    KafkaClient("java", "2.1.0", "javac", _make_java, _java),
    KafkaClient("sarama", "1.30.1", "go", _make_go, lambda folder: [folder / "roundtrip"], transactions=False),
    KafkaClient(
        "kafka-python",
        "2.0.2",
        _python("3.11"),
        _make_python,
        _in_venv("kafka_python_roundtrip.py"),
        transactions=False,
        artifact="kafka-python",
        needs=_CODECS_OF_PYTHON,
    ),
    KafkaClient(
        "confluent-kafka",
        "1.8.2",
        _python("3.9"),
        _make_python,
        _in_venv("confluent_roundtrip.py"),
        artifact="confluent-kafka",
    ),
)


def install(client: KafkaClient) -> None:
    """Install a client unless it is there; another process that does so at this moment is waited for."""
    with _alone(client):
        stamp = _stamp(client)
        if (client.folder / "stamp").exists() and (client.folder / "stamp").read_text() == stamp:
            return
        shutil.rmtree(client.folder, ignore_errors=True)
        client.folder.mkdir(parents=True)
        client.make(client, client.folder)
        (client.folder / "stamp").write_text(stamp)


def ready(client: KafkaClient) -> None:
    """Install it for a test, which skips by name where its program is missing, and fails there in CI."""
    if shutil.which(client.program) is None:
        missing(client.program, str(client))
    install(client)


def round_trip(
    client: KafkaClient,
    address: str,
    topic: str,
    group: str,
    count: int,
    transactional_id: str = "",
    settings: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """What the client read of what it sent: partition, offset, key, value, number (its header) and timestamp.

    `settings`: of the client besides, for those in Java and of kafka-python.
    """
    properties = "\n".join(f"{name}={value}" for name, value in (settings or {}).items())
    done = subprocess.run(
        [
            *map(str, client.command(client.folder)),
            address,
            topic,
            group,
            ",".join(client.codecs),
            str(count),
            transactional_id,
        ],
        env={**os.environ, "CLIENT_PROPERTIES": properties},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def expected(client: KafkaClient, count: int) -> dict[str, tuple[str | None, str, int]]:
    """What a round trip is to find: (value, number, timestamp) by key."""
    return {
        f"{codec}-{i}": (None if i % 7 == 0 else f"value {i}", str(i), FIRST_TIMESTAMP + i)
        for codec in client.codecs
        for i in range(count)
    }


def tool_rows(shown: str) -> list[dict[str, str]]:
    """What one of Kafka's tools prints as a table: each row by the names of its columns."""
    head, *lines = (line.split("\t") for line in shown.splitlines() if line.strip())
    return [dict(zip((name.strip() for name in head), (cell.strip() for cell in line), strict=True)) for line in lines]


def _stamp(client: KafkaClient) -> str:
    sources = sorted(path for path in SOURCES.rglob("*") if path.is_file())
    return "\n".join([str(client), client.folder.as_posix(), *(path.read_text() for path in sources)])


@contextmanager
def _alone(client: KafkaClient) -> Iterator[None]:
    STORE.mkdir(parents=True, exist_ok=True)
    with open(STORE / f"{client.folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

"""A Kafka broker for one case: one KRaft node on loopback, in a folder of its own; or a cluster of several."""

import base64
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import jars
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from leash import leashed
from runner import CaseError

_START_S = 90.0
_HEAP = "1g"
# As Kafka's own scripts start it, with the heap bounded.
_JVM = (
    f"-Xmx{_HEAP}", f"-Xms{_HEAP}", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
)  # fmt: skip
_LOGGING = """\
appenders=file
appender.file.type=File
appender.file.name=file
appender.file.fileName=%s
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%%d %%p %%m (%%c)%%n
rootLogger.level=WARN
rootLogger.appenderRef.file.ref=file
"""


class BrokerError(CaseError):
    """The broker did not start."""


@dataclass(frozen=True)
class Broker:
    """A running broker: `address` for clients, `logs` the folder of its partitions; `pid` has started its process."""

    address: str
    logs: Path
    pid: int


# Of a case that starts its own.
NONE = Broker("", Path(), 0)


@contextmanager
def running(folder: Path, more: Mapping[str, object] | None = None) -> Iterator[Broker]:
    """A broker that answers, with all it keeps in `folder` (made here); stopped at the end, and when we die.

    `more`: settings beside those that every case has.
    """
    with cluster(folder, 1, more) as (one,):
        yield one


@contextmanager
def cluster(
    folder: Path, count: int, more: Mapping[str, object] | None = None, of: jars.ClassPath = jars.BROKER
) -> Iterator[list[Broker]]:
    """Some brokers that are controllers, too, each as `running` starts one; where they are many, a folder each."""
    ports, cluster_id = _free_ports(2 * count), base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    voters = ",".join(f"{number + 1}@127.0.0.1:{ports[count + number]}" for number in range(count))
    with ExitStack() as stack:
        brokers, processes = [], []
        for number in range(count):
            own = folder if count == 1 else folder / f"node-{number + 1}"
            own.mkdir(parents=True)
            place = {"node.id": number + 1, "controller.quorum.voters": voters, **(more or {})}
            properties = own / "server.properties"
            told_properties = _properties(ports[number], ports[count + number], own / "data", place)
            properties.write_text(told_properties, encoding="utf-8")
            command = _command(own, properties, cluster_id, of)
            # What it has not written yet is thrown away in a moment anyhow: no patience.
            process = stack.enter_context(leashed(command, own, own / "broker.out", patience_s=0))
            processes.append((process, own))
            brokers.append(Broker(f"127.0.0.1:{ports[number]}", own / "data", process.pid))
        for one, (process, own) in zip(brokers, processes, strict=True):
            _await(process, one.address, own, count)
        yield brokers


def _command(folder: Path, properties: Path, cluster_id: str, of: jars.ClassPath) -> list[str]:
    """The command line of a broker, whose storage is formatted first."""
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING % (folder / "broker.log"), encoding="utf-8")
    scratch = folder / "scratch"
    scratch.mkdir()
    class_path = ":".join(str(jar) for jar in jars.fetched(of))
    tool = [f"-Dlog4j2.configurationFile={logging}", f"-Djava.io.tmpdir={scratch}", "-cp", class_path]
    _format([jars.java(), *tool], properties, cluster_id)
    return [jars.java(), *_JVM, *tool, "kafka.Kafka", str(properties)]


def _properties(port: int, controller: int, logs: Path, more: Mapping[str, object]) -> str:
    """A broker as Kafka ships it, but for what a single node needs and for data that is kept until the case ends."""
    settings = {
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": logs,
        "log.retention.ms": -1,
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        **more,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _format(tool: list[str], properties: Path, cluster_id: str) -> None:
    run = subprocess.run(
        [*tool, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", str(properties)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if run.returncode:
        raise BrokerError(f"Kafka's storage could not be formatted:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")


def _await(process: "subprocess.Popen[bytes]", address: str, folder: Path, count: int) -> None:
    """Wait until the broker is one of its own cluster of `count`: from then on topics can be created."""
    until = time.monotonic() + _START_S
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0, "reconnect.backoff.max.ms": 200})
    while process.poll() is None and time.monotonic() < until:
        try:
            if len(admin.list_topics(timeout=2).brokers) >= count:
                return
        except KafkaException:
            continue  # not there yet: list_topics has waited for it
        time.sleep(0.1)  # of a cluster, others are not
    why = "ended" if process.poll() is not None else f"did not answer within {_START_S:.0f} s"
    raise BrokerError(f"The broker {why}:\n{told(folder)}")


def told(folder: Path) -> str:
    """The end of what the broker of this folder had to say."""
    return "".join(_tail(folder / name) for name in ("broker.out", "broker.log"))


def _tail(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")[-3000:] if path.exists() else ""


def _free_ports(number: int) -> list[int]:
    """Free ports, all found before any is released, so that they differ."""
    held = [socket.socket() for _ in range(number)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()

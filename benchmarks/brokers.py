"""tidelog's brokers as processes of their own for the cases that measure them, and Kafka's clients for them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
from produce import keyed_records

VALUE_BYTES = 100
# Records that a producer may hold: no case measures how a full queue is waited for.
_QUEUED = 2_000_000
# librdkafka writes what it retries to stderr, as often as it does.
_QUIET = {"log_level": 0}
_STOPPED_S = 30
_LETTERS = bytes(65 + at % 26 for at in range(256))


class BrokerProcess:
    """One broker over a lake, as `tidelog broker start` runs it, without maintenance; or several `processes` of it.

    `settings`: Kafka's names with `_` for `.`. What it has to say goes to `log`, of a folder `<lake>-broker.log`.
    """

    def __init__(
        self, lake: Path | str, broker_id: int | None = None, processes: int = 1, log: Path | None = None,
        **settings: Any,
    ) -> None:  # fmt: skip
        command = ["--lake", str(lake), "--format", "json", "broker", "start", "--listener", "127.0.0.1:0"]
        own = [] if broker_id is None else ["--id", str(broker_id)]
        if processes > 1:
            own += ["--processes", str(processes)]
        given = {f"TIDELOG_BROKER_{name.upper()}": str(value) for name, value in settings.items()}
        folder = Path(lake)
        self._log = log or folder.with_name(f"{folder.name}-broker.log")
        with self._log.open("ab") as told:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tidelog", *command, *own, "--no-maintain"],
                stdout=subprocess.PIPE, stderr=told, env=os.environ | given,
            )  # fmt: skip
        self.id, self.address = -1, ""
        self._processes = processes

    @property
    def pid(self) -> int:
        """The process that was started; several processes are its children."""
        return self._process.pid

    def ready(self) -> "BrokerProcess":
        """Wait until clients can connect; RuntimeError with what it said when it ends instead."""
        assert self._process.stdout is not None
        lines = [self._process.stdout.readline() for _ in range(self._processes)]
        if not all(lines):
            raise RuntimeError(f"The broker ended:\n{self._log.read_text(encoding='utf-8', errors='replace')[-3000:]}")
        said = json.loads(lines[0])
        self.id, self.address = said["id"], said["listener"]
        return self

    @property
    def processor_s(self) -> float:
        """Processor time that it has had, of all its threads, in seconds."""
        return processor_s(self._process.pid)

    @property
    def memory_mib(self) -> float:
        """The memory that it has now."""
        return float(_ps(self._process.pid, "rss")) / 2**10

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """SIGTERM, and wait; SIGKILL when it does not end in time."""
        self._process.terminate()
        try:
            self._process.wait(_STOPPED_S)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def running(lake: Path | str, count: int = 1, **settings: Any) -> Iterator[list[BrokerProcess]]:
    """Some brokers over a lake, stopped at the end of the block."""
    with ExitStack() as stack:
        brokers = []
        for _ in range(count):
            brokers.append(BrokerProcess(lake, **settings))
            stack.callback(brokers[-1].stop)
        yield [broker.ready() for broker in brokers]


def processor_s(pid: int) -> float:
    """Processor time that a process has had, in seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except FileNotFoundError:  # no Linux
        *hours, minutes, seconds = _ps(pid, "time").split(":")
        return sum(float(hour) * 3600 for hour in hours) + float(minutes) * 60 + float(seconds)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ps(pid: int, what: str) -> str:
    told = subprocess.run(["ps", "-o", f"{what}=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout
    return told.strip()


def producer(address: str, **conf: Any) -> confluent_kafka.Producer:
    """Kafka's own producer for librdkafka, with acks=all; `conf`: Kafka's keys with `_` for `.`."""
    settings = {
        "bootstrap.servers": address,
        "acks": "all",
        "queue.buffering.max.messages": _QUEUED,
        "queue.buffering.max.kbytes": 1 << 20,
    }
    return confluent_kafka.Producer({**_QUIET, **settings, **_dotted(conf)})


def consumer(address: str, **conf: Any) -> confluent_kafka.Consumer:
    """A consumer without a group's help: it starts where it is assigned, and commits nothing."""
    settings = {
        "bootstrap.servers": address,
        "group.id": "bench",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    return confluent_kafka.Consumer({**_QUIET, **settings, **_dotted(conf)})


def sent(own: confluent_kafka.Producer) -> None:
    """Wait until all is delivered, or fail."""
    left = own.flush(120)
    if left:
        raise RuntimeError(f"{left} records were not delivered")


def produced(address: str, topic: str, values: list[bytes], keys: list[bytes], **conf: Any) -> None:
    """Produce these records with a producer of their own."""
    own = producer(address, **conf)
    for value, key in zip(values, keys, strict=True):
        own.produce(topic, value, key)
        own.poll(0)
    sent(own)


def consumed(address: str, topic: str, partitions: int, records: int, **conf: Any) -> None:
    """Read `records` records of a topic from its beginning."""
    own = consumer(address, **conf)
    own.assign([confluent_kafka.TopicPartition(topic, p, confluent_kafka.OFFSET_BEGINNING) for p in range(partitions)])
    count = 0
    while count < records:
        found = own.consume(10_000, 30)
        if not found or any(message.error() for message in found):
            raise RuntimeError(f"{count} of {records} records were read, and then {found[:1]}")
        count += len(found)
    own.close()


def lettered_records(count: int) -> tuple[list[bytes], list[bytes]]:
    """Values of 100 random letters, as Kafka's own performance tool sends them, and keys."""
    values, keys = keyed_records(count)
    return [value.translate(_LETTERS) for value in values], keys


def _dotted(conf: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in conf.items()}

"""The scripts that start Connect's workers and MirrorMaker, with the security of their brokers."""

from collections.abc import Mapping

from compat.kafka_cases.lakes import committed, count, overrides, records, topics
from compat.kafka_scripts import Tools
from support.kafka_connect import ConnectWorker, properties
from support.kafka_programs import JavaProgram
from support.waiting import eventually

_LIMIT_S = 240.0
_TEXTS = "org.apache.kafka.connect.storage.StringConverter"
_LINES = [f"line {number}" for number in range(100)]
_FILE = "org.apache.kafka.connect.file.FileStream{}Connector"


def _secured(settings: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    """A client's settings for each kind of client of a worker."""
    return {f"{prefix}{key}": value for prefix in prefixes for key, value in settings.items()}


def _soon(run: JavaProgram, tools: Tools, topic: str, wanted: int) -> None:
    """Wait until a topic has `wanted` records."""

    def there() -> bool:
        assert run.process.poll() is None, run.said()[-2000:]
        return topic in topics(tools) and count(tools, topic) >= wanted

    eventually(there, f"{wanted} records in {topic}", _LIMIT_S)


def standalone(tools: Tools) -> None:
    """A file becomes a topic, and a topic a file, by the script's own files of settings."""
    source, sink = tools.file("given.txt", "\n".join(_LINES) + "\n"), tools.folder / "taken.txt"
    worker = {
        "bootstrap.servers": tools.address,
        "key.converter": _TEXTS,
        "value.converter": _TEXTS,
        "offset.storage.file.filename": tools.folder / "standalone.offsets",
        "listeners": "http://127.0.0.1:0",
        "plugin.discovery": "service_load",
        "consumer.auto.offset.reset": "earliest",
        **_secured(tools.settings, "", "producer.", "consumer.", "admin."),
    }
    into = {"name": "into", "connector.class": _FILE.format("Source"), "file": source, "topic": "standalone-lines"}
    out = {"name": "out", "connector.class": _FILE.format("Sink"), "file": sink, "topics": "standalone-lines"}
    files = [
        properties(tools.folder / f"{name}.properties", settings)
        for name, settings in (("worker", worker), ("into", into), ("out", out))
    ]
    with tools.started("connect-standalone", *files) as run:
        _soon(run, tools, "standalone-lines", len(_LINES))
        eventually(lambda: sink.exists() and sink.read_text().split("\n")[:-1] == _LINES, f"lines in {sink}", _LIMIT_S)
        assert run.end() in (0, 143), run.said()[-2000:]
    assert [value for _, value in records(tools, "standalone-lines")] == _LINES
    assert sum(committed(tools, "connect-out").values()) == len(_LINES)


def distributed(tools: Tools) -> None:
    """A connector is made over REST; its worker keeps its own topics with the brokers."""
    source = tools.file("distributed.txt", "\n".join(_LINES) + "\n")
    secured = _secured(tools.settings, "", "producer.", "consumer.", "admin.")
    settings = {"group.id": "connect-distributed", **secured}
    with ConnectWorker(tools.address, tools.folder / "distributed", settings).ready() as run:
        run.configure("into", {"connector.class": _FILE.format("Source"), "file": source, "topic": "distributed-lines"})
        run.await_running("into")
        _soon(run, tools, "distributed-lines", len(_LINES))
        assert run.end() in (0, 143), run.said()[-2000:]
    assert [value for _, value in records(tools, "distributed-lines")] == _LINES
    assert {"connect-configs", "connect-offsets", "connect-statuss"} <= set(topics(tools))


def mirror_maker(tools: Tools) -> None:
    """A topic is copied beside itself under its cluster's name, with its configuration and its group's offsets."""
    tools.topic("mirrored")
    place = ("--entity-type", "topics", "--entity-name", "mirrored")
    tools("kafka-configs", *place, "--alter", "--add-config", "retention.ms=88000000")
    tools.consume("mirrored", "mirroring", 30)
    settings = {
        "clusters": "a, b",
        "a.bootstrap.servers": tools.address,
        "b.bootstrap.servers": tools.address,
        **_secured(tools.settings, "a.", "b."),
        "a->b.enabled": "true",
        "b->a.enabled": "false",
        "a->b.topics": "mirrored",
        "a->b.groups": "mirroring",
        "plugin.discovery": "service_load",
        "emit.heartbeats.enabled": "false",
        # Else the topic of heartbeats would be copied beside itself without an end, as both clusters are one.
        "heartbeats.replication.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "emit.checkpoints.interval.seconds": 1,
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": 1,
        "refresh.topics.interval.seconds": 2,
        "refresh.groups.interval.seconds": 2,
        "offset.lag.max": 0,
        **{
            f"{kind}.replication.factor": 1
            for kind in (
                "checkpoints.topic",
                "offset-syncs.topic",
                "offset.storage",
                "status.storage",
                "config.storage",
            )
        },
        "replication.factor": 1,
    }
    file = properties(tools.folder / "mirror.properties", settings)
    with tools.started("connect-mirror-maker", file) as run:
        _soon(run, tools, "a.mirrored", 30)
        copied = {("a.mirrored", n) for n in range(3)}
        eventually(lambda: copied <= committed(tools, "mirroring").keys(), "offsets of the copy", _LIMIT_S)
        assert run.end() in (0, 143), run.said()[-2000:]
    assert records(tools, "a.mirrored") == records(tools, "mirrored")
    assert overrides(tools, "a.mirrored")["retention.ms"] == "88000000"

"""Kafka's own programs in Java: fetched by Maven's coordinates, started with a log, killed, and started again."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory

from support.kafka_clients import KafkaClient, fetch_jars, run_command
from support.waiting import PATIENCE_S, eventually

_KAFKA = "4.2.0"
_JAVA = ("java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SOURCE = Path(__file__).with_name("StreamsPrograms.java")


class JavaProgram(AbstractContextManager["JavaProgram"]):
    """A process of this command. What it prints goes to `log`, behind what an earlier one printed there.

    A context manager that leaves none behind.
    """

    def __init__(self, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.log = log
        self._before = log.stat().st_size if log.exists() else 0
        with open(log, "ab") as out:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
            )

    def said(self) -> str:
        """All that this process has printed."""
        with open(self.log, "rb") as file:
            file.seek(self._before)
            return file.read().decode(errors="replace")

    def await_line(self, line: str, timeout_s: float = PATIENCE_S) -> None:
        """Wait until it has printed this line. Raises `AssertionError` when it ends first, or for its time."""

        def there() -> bool:
            ended, lines = self.process.poll() is not None, self.said().splitlines()
            assert line in lines or not ended, f"it ended with {self.process.returncode}: {self.said()[-3000:]}"
            return line in lines

        eventually(there, f"{line!r} in {self.log}", timeout_s)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """SIGTERM; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
        if self.process.stdin is not None:
            self.process.stdin.close()


def java(folder: Path, *words: str | Path) -> Sequence[str | Path]:
    """A command that runs a class of the jars in a folder; `words`: options of Java, the class and its arguments."""
    return [*_JAVA, "-cp", f"{folder}/classes:{folder}/*", *words]


def _of_kafka(*names: str) -> Callable[[KafkaClient, Path], None]:
    def make(client: KafkaClient, folder: Path) -> None:
        for name in names:
            fetch_jars(folder, "org.apache.kafka", name, client.version, transitive=name == names[0])

    return make


def _make_connect(client: KafkaClient, folder: Path) -> None:
    _of_kafka("connect-runtime", "connect-file", "connect-mirror", "connect-mirror-client")(client, folder)
    fetch_jars(folder, "net.sourceforge.argparse4j", "argparse4j", "0.7.0", transitive=False)
    fetch_jars(folder, "org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3", transitive=True)


def _make_debezium(client: KafkaClient, folder: Path) -> None:
    plugin = folder / "debezium"
    plugin.mkdir()
    fetch_jars(plugin, "io.debezium", "debezium-connector-postgres", client.version, transitive=True)


# Kafka Streams with the programs of StreamsPrograms.java.
STREAMS = KafkaClient("kafka-streams", _KAFKA, "javac", _of_kafka("kafka-streams"), lambda folder: java(folder))
# Connect's distributed worker, its connectors of files, and MirrorMaker 2.
CONNECT = KafkaClient("kafka-connect", _KAFKA, "java", _make_connect, lambda folder: java(folder))
# Its folder is for Connect's plugin.path.
DEBEZIUM = KafkaClient("debezium-postgres", "3.3.1.Final", "java", _make_debezium, lambda folder: java(folder))


def _compiled() -> None:
    """Compile StreamsPrograms.java as it is now, unless that was done."""
    classes = STREAMS.folder / "classes"
    compiled = classes / f"{_SOURCE.stem}.class"
    if compiled.exists() and compiled.stat().st_mtime >= _SOURCE.stat().st_mtime:
        return
    with TemporaryDirectory(dir=STREAMS.folder) as fresh:
        run_command(["javac", "-cp", STREAMS.folder / "*", "-d", fresh, _SOURCE], STREAMS.folder)
        classes.mkdir(exist_ok=True)
        for one in Path(fresh).iterdir():
            one.replace(classes / one.name)


def streams(
    program: str, address: str, application: str, folder: Path, settings: Mapping[str, object] | None = None
) -> JavaProgram:
    """Start a program of StreamsPrograms.java (after `install(STREAMS)`); its state and its log are in the folder.

    It prints RUNNING once it runs. Started again with the same folder, it goes on where it was.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _compiled()
    told = [f"{name}={value}" for name, value in (settings or {}).items()]
    command = [*java(STREAMS.folder, _SOURCE.stem), program, address, application, folder / "state", *told]
    return JavaProgram(command, folder / "streams.log")

"""The scripts of a Kafka distribution's `bin/`: what each starts, its options for brokers, and calls of it."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from support.kafka_connect import properties
from support.kafka_programs import CONNECT, JavaProgram
from support.kafka_users import User, login

_LIMIT_S = 240
# Classes are mapped from an archive once there is one: a call costs half as much then.
_JAVA = "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xlog:disable -Dlog4j2.level=ERROR"
_ARCHIVE = "classes.jsa"
_TOOLS = "org.apache.kafka.tools"


class Script(NamedTuple):
    """A script: the class that it starts, and its options for brokers and for a file of a client's settings.

    `behind`: it takes both behind its other arguments. `server` or `settings` is "" where it has no such option.
    """

    main: str
    settings: str = "--command-config"
    server: str = "--bootstrap-server"
    behind: bool = False


SCRIPTS = {
    "connect-distributed": Script("org.apache.kafka.connect.cli.ConnectDistributed", "", ""),
    "connect-mirror-maker": Script("org.apache.kafka.connect.mirror.MirrorMaker", "", ""),
    "connect-standalone": Script("org.apache.kafka.connect.cli.ConnectStandalone", "", ""),
    "kafka-acls": Script(f"{_TOOLS}.AclCommand"),
    "kafka-broker-api-versions": Script(f"{_TOOLS}.BrokerApiVersionsCommand"),
    "kafka-client-metrics": Script(f"{_TOOLS}.ClientMetricsCommand"),
    "kafka-cluster": Script(f"{_TOOLS}.ClusterTool", "--config", behind=True),
    "kafka-configs": Script("kafka.admin.ConfigCommand"),
    "kafka-console-consumer": Script(f"{_TOOLS}.consumer.ConsoleConsumer", "--consumer.config"),
    "kafka-console-producer": Script(f"{_TOOLS}.ConsoleProducer", "--producer.config"),
    "kafka-console-share-consumer": Script(f"{_TOOLS}.consumer.ConsoleShareConsumer", "--consumer-config"),
    "kafka-consumer-groups": Script(f"{_TOOLS}.consumer.group.ConsumerGroupCommand"),
    "kafka-consumer-perf-test": Script(f"{_TOOLS}.ConsumerPerformance", "--consumer.config"),
    "kafka-delegation-tokens": Script(f"{_TOOLS}.DelegationTokenCommand"),
    "kafka-delete-records": Script(f"{_TOOLS}.DeleteRecordsCommand"),
    "kafka-e2e-latency": Script(f"{_TOOLS}.EndToEndLatency", "", ""),
    "kafka-features": Script(f"{_TOOLS}.FeatureCommand"),
    "kafka-get-offsets": Script(f"{_TOOLS}.GetOffsetShell"),
    "kafka-groups": Script(f"{_TOOLS}.GroupsCommand"),
    "kafka-leader-election": Script(f"{_TOOLS}.LeaderElectionCommand", "--admin.config"),
    "kafka-log-dirs": Script(f"{_TOOLS}.LogDirsCommand"),
    "kafka-metadata-quorum": Script(f"{_TOOLS}.MetadataQuorumCommand"),
    "kafka-producer-perf-test": Script(f"{_TOOLS}.ProducerPerformance", "--producer.config", "", behind=True),
    "kafka-reassign-partitions": Script(f"{_TOOLS}.reassign.ReassignPartitionsCommand"),
    "kafka-replica-verification": Script(f"{_TOOLS}.ReplicaVerificationTool", "", "--broker-list"),
    "kafka-share-groups": Script(f"{_TOOLS}.consumer.group.ShareGroupCommand"),
    "kafka-streams-application-reset": Script(f"{_TOOLS}.StreamsResetter", "--config-file"),
    "kafka-streams-groups": Script(f"{_TOOLS}.streams.StreamsGroupCommand"),
    "kafka-topics": Script(f"{_TOOLS}.TopicCommand"),
    "kafka-transactions": Script(f"{_TOOLS}.TransactionsCommand"),
    "kafka-verifiable-consumer": Script(f"{_TOOLS}.VerifiableConsumer", "--consumer.config"),
    "kafka-verifiable-producer": Script(f"{_TOOLS}.VerifiableProducer", "--producer.config"),
}
_OF_KAFKA = "it runs Kafka's own servers, which brokers of a lake stand for"
_FILES = "it reads the files of a Kafka broker's disk; 'tidelog check' and 'tidelog topic describe' look at a lake's"
# Scripts of the distribution that ask no broker anything.
WITHOUT_BROKERS = {
    "connect-plugin-path": "it looks at folders of Connect's plugins, and asks no broker",
    "kafka-dump-log": _FILES,
    "kafka-jmx": "a broker of a lake is no JVM; 'tidelog broker start --metrics' serves its metrics",
    "kafka-metadata-shell": _FILES,
    "kafka-server-start": _OF_KAFKA,
    "kafka-server-stop": _OF_KAFKA,
    "kafka-storage": "it formats a Kafka broker's disk; a lake needs no such step",
    "trogdor": "it drives agents beside Kafka's own servers; 'make reliability' is the like of it here",
}


def scripts(folder: Path, jars: Sequence[Path]) -> Path:
    """Make `bin/` with the scripts of a distribution, which start Java with these jars; the folder."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    own = ":".join(map(str, jars))
    archived = f'"${{ARCHIVING:--XX:SharedArchiveFile={folder / _ARCHIVE}}}"'
    for name, script in SCRIPTS.items():
        path = folder / "bin" / f"{name}.sh"
        class_path = f"-cp '{CONNECT.folder}/*'" if name.startswith("connect-") else f"{archived} -cp '{own}'"
        path.write_text(f'#!/bin/sh\nexec java {_JAVA} {class_path} {script.main} "$@"\n')
        path.chmod(0o755)
    return folder


class Tools:
    """Calls the scripts of `kafka` against brokers, as a user of theirs where they have users.

    `address`: as clients take it. `folder`: for what scripts read and write. `lake`: the folder of the brokers' lake.
    `settings`: of every client, in Java's words; `told`: the file of them, where there are any.
    """

    def __init__(self, kafka: Path, address: str, user: User | None, folder: Path, lake: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.address = address
        self.user = user
        self.folder = folder
        self.lake = lake
        self.settings = login(user) if user else {}
        self.told = (properties(folder / "client.properties", self.settings),) if user else ()
        self._kafka = kafka

    def __call__(self, tool: str, *args: str | Path, given: str = "") -> str:
        """What the tool prints; `AssertionError` when it fails."""
        done = self._run(tool, args, given)
        words = done.stdout + done.stderr
        assert done.returncode == 0, f"{_shown(tool, args)}: {words[-600:]}"
        assert "Error" not in words.replace("ErrorCode", ""), f"{_shown(tool, args)}: {words[-600:]}"
        return done.stdout

    def refused(self, tool: str, *args: str | Path) -> str:
        """What a tool prints that is refused; `AssertionError` when it is not."""
        done = self._run(tool, args, "")
        words = done.stdout + done.stderr
        assert done.returncode or "Error" in words or "Exception" in words, f"{_shown(tool, args)}: {words[-600:]}"
        return words

    def started(self, tool: str, *args: str | Path) -> JavaProgram:
        """A tool that goes on until it is stopped. Its log is in the folder."""
        return JavaProgram(self._command(tool, args), self.folder / f"{tool}.log")

    def file(self, name: str, text: str) -> Path:
        """A file for a tool to read."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def _command(self, tool: str, args: Sequence[str | Path]) -> list[str | Path]:
        script = SCRIPTS[tool]
        common: list[str | Path] = [script.server, self.address] if script.server else []
        if self.told and script.settings:
            common += [script.settings, *self.told]
        path = self._kafka / "bin" / f"{tool}.sh"
        return [path, *args, *common] if script.behind else [path, *common, *args]

    def _run(self, tool: str, args: Sequence[str | Path], given: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(word) for word in self._command(tool, args)],
            input=given,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )

    def archive_classes(self) -> None:
        """Keep the classes that a tool loads, for all that come later, unless that was done."""
        archive = self._kafka / _ARCHIVE
        if not archive.exists():
            told = {**os.environ, "ARCHIVING": f"-XX:ArchiveClassesAtExit={archive}"}
            subprocess.run(list(map(str, self._command("kafka-topics", ("--list",)))), env=told, check=True)

    # What many cases need of the tools.

    def topic(self, name: str, count: int = 30) -> None:
        """Create a topic with three partitions, and send it numbers, keyed by themselves."""
        self("kafka-topics", "--create", "--topic", name, "--partitions", "3")
        lines = "".join(f"{n}:{n}\n" for n in range(count))
        keys = ("--property", "parse.key=true", "--property", "key.separator=:")
        self("kafka-console-producer", "--topic", name, *keys, given=lines)

    def consume(self, name: str, group: str, count: int) -> list[str]:
        """Read by a group's member, which commits."""
        limits = ("--max-messages", str(count), "--timeout-ms", "60000")
        return self(
            "kafka-console-consumer", "--topic", name, "--group", group, "--from-beginning", *limits
        ).splitlines()

    def lag(self, group: str) -> int:
        """The sum of column LAG."""
        shown = self("kafka-consumer-groups", "--describe", "--group", group)
        rows = [line.split() for line in shown.splitlines() if line.startswith(group)]
        return sum(int(row[5]) for row in rows)


def _shown(tool: str, args: Sequence[str | Path]) -> str:
    return f"{tool} {' '.join(map(str, args))}"

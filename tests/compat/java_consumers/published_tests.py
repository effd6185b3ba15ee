"""The classes PlaintextConsumer*Test run with the newest consumer at brokers that are there.

Kafka 4.0 is the last whose published jars have all of these classes: later ones are built from sources alone. What
starts their brokers (IntegrationTestHarness) is replaced by a class of the same name that starts none.
"""

import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path

from compat.suite import CLASSIC, CONSUMER, FAILED, PASSED, SKIPPED, Outcome, built, named, run
from support.kafka_clients import NEWEST

SUITE = "java-consumers"
_TESTS, _CLIENTS = "4.0.2", NEWEST[0].version
_CLASSES = (
    "kafka.api.PlaintextConsumerAssignTest",
    "kafka.api.PlaintextConsumerAssignorsTest",
    "integration.kafka.api.PlaintextConsumerCallbackTest",
    "kafka.api.PlaintextConsumerCommitTest",
    "kafka.api.PlaintextConsumerFetchTest",
    "kafka.api.PlaintextConsumerPollTest",
    "kafka.api.PlaintextConsumerSubscriptionTest",
    "kafka.api.PlaintextConsumerTest",
)
# (group, artifact, version, whether its jar of tests is needed, too)
_ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", _TESTS, True),
    ("org.apache.kafka", "kafka-server-common", _TESTS, True),
    ("org.apache.kafka", "kafka-clients", _CLIENTS, True),
    ("org.junit.platform", "junit-platform-console-standalone", "1.11.4", False),
    ("org.slf4j", "slf4j-nop", "1.7.36", False),
)
_HARNESS = Path(__file__).with_name("IntegrationTestHarness.java")
_PROTOCOL = re.compile(r"groupProtocol=(\w+)")
_ASSIGNOR = re.compile(r"assignmentStrategy=[\w.]*?(\w+)Assignor")
_LIMIT_S = 3600


def build(folder: Path) -> Path:
    """Fetch the jars and compile the harness; the folder of both. Does nothing the second time but compile."""
    home = folder / f"java-consumers-{_TESTS}-{_CLIENTS}"
    if not (home / "complete").exists():
        home.mkdir(parents=True, exist_ok=True)
        module = home / "ivy.xml"
        module.write_text(_module())
        retrieve = ["-retrieve", "[artifact]-[revision](-[classifier]).[ext]", "-types", "jar", "bundle"]
        command = ["java", "-jar", _ivy(), "-ivy", module, "-confs", "default", *retrieve, "-cache", home / "cache"]
        built(command, home / "fetch.log", cwd=home)
        (home / "complete").touch()
    built(["javac", "-nowarn", "-cp", f"{home}/*", "-d", home / "classes", _HARNESS], home / "build.log", cwd=home)
    return home


def outcomes(home: Path, address: str, logs: Path, only: str, protocols: Sequence[str]) -> Iterator[Outcome]:
    """Run the classes, one after another. `only`: a part of the name of a class or of a test."""
    for class_name in _CLASSES:
        short = class_name.rpartition(".")[2]
        if only.startswith("Plaintext") and short not in only:
            continue
        report = logs / short
        command = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dbootstrap={address}"]
        command += ["-cp", f"{home}/classes:{home}/*", "org.junit.platform.console.ConsoleLauncher", "execute"]
        command += ["--disable-banner", "--details=none", f"--reports-dir={report}"]
        began = time.monotonic()
        code = run([*command, f"--select-class={class_name}"], logs / f"{short}.log", cwd=home, limit_s=_LIMIT_S)
        read = report / "TEST-junit-jupiter.xml"
        if not read.exists():
            words = f"no end within {_LIMIT_S} s" if code is None else f"ended with {code}"
            yield Outcome(SUITE, short, FAILED, time.monotonic() - began, words)
            continue
        yield from (one for one in _read(short, read, protocols) if only in one.test)


def _read(short: str, report: Path, protocols: Sequence[str]) -> Iterator[Outcome]:
    for case in ET.parse(report).getroot().iter("testcase"):
        printed = " ".join(part.text or "" for part in case.iter("system-out"))
        told = _PROTOCOL.search(printed)
        protocol = CONSUMER if told and told[1].lower() == CONSUMER else CLASSIC
        if protocol not in protocols:
            continue
        bad = next((part for part in case if part.tag in ("failure", "error")), None)
        state = FAILED if bad is not None else SKIPPED if case.find("skipped") is not None else PASSED
        words = "" if bad is None else f"{bad.get('type', '')}: {bad.get('message', '')}"
        assignor = _ASSIGNOR.search(printed)
        test = f"{short} {case.get('name', '').partition('(')[0]}{f' {assignor[1]}' if assignor else ''}"
        yield Outcome(SUITE, named(test, protocol), state, float(case.get("time", 0)), " ".join(words.split())[:300])


def _module() -> str:
    """The jars for Ivy (an ivy.xml)."""
    lines = []
    for group, name, version, tests in _ARTIFACTS:
        lines.append(f'  <dependency org="{group}" name="{name}" rev="{version}" conf="default->default">')
        lines.append(f'   <artifact name="{name}" type="jar" ext="jar"/>')
        if tests:
            lines.append(f'   <artifact name="{name}" type="jar" ext="jar" m:classifier="test"/>')
        lines.append("  </dependency>")
    return "\n".join(
        (
            '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
            ' <info organisation="tidelog" module="java-consumers"/>',
            ' <configurations><conf name="default"/></configurations>',
            " <dependencies>",
            *lines,
            " </dependencies>",
            "</ivy-module>\n",
        )
    )


def _ivy() -> Path:
    import pyspark

    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    return ivy

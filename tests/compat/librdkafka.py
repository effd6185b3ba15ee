"""librdkafka's own integration tests, which the crate rdkafka-sys carries with its source.

Tests that librdkafka marks as local are left out: they use a mock cluster or no broker at all.
"""

import json
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from compat.suite import CLASSIC, FAILED, GROUP_PROTOCOL, PASSED, SKIPPED, Outcome, built, named, run

CRATE, VERSION = "rdkafka-sys", "4.10.0+2.12.1"
SUITE = "librdkafka"
# The scenario of a broker that makes no topics on the way.
NO_AUTO_CREATE = "noautocreate"
# Tests of many parts that one part ends: each part is run for itself, and is a test of the list.
_PARTS = {
    "0081": (
        *("CreateTopics", "DeleteTopics", "CreatePartitions", "CreateAcls", "DescribeAcls", "DeleteAcls"),
        *("AlterConfigs", "IncrementalAlterConfigs", "DescribeConfigs", "DeleteRecords", "ListConsumerGroups"),
        *("DescribeConsumerGroups", "DescribeTopics", "DescribeCluster", "DeleteGroups", "DeleteConsumerGroupOffsets"),
        *("AlterConsumerGroupOffsets", "ListConsumerGroupOffsets", "UserScramCredentials", "ListOffsets"),
    ),
    "0103": (
        *("misuse_txn", "basic_producer_txn", "consumer_producer_txn", "fenced_txn", "empty_txn"),
        *("fatal_idempo_error_without_kip360", "wmark_isolation_level", "txn_abort_control_message_leader_epoch"),
    ),
}
_TEST = re.compile(r"_TEST\(\s*((\d{4})_\w+),(.*?)\)(?=,\s*(?:_TEST|#|/\*|\{NULL))", re.DOTALL)
_LIMIT_S = 420
_MANUAL = 8000
_AT_ONCE_S = 0.02


def build(folder: Path) -> Path:
    """Fetch the crate and build the tests' program; the folder of the tests. Does nothing the second time."""
    tree = folder / f"librdkafka-{VERSION}"
    if not (tree / "tests/test-runner").exists():
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(_fetched(folder) / "librdkafka", tree)
        for number, command in enumerate(
            (["./configure"], ["make", "-j2", "libs"], ["make", "-j2", "-C", "tests", "build"])
        ):
            built(command, folder / f"build-{number}.log", cwd=tree)
    return tree / "tests"


def _fetched(folder: Path) -> Path:
    """The crate's folder, as cargo unpacks it."""
    crate = folder / "crate"
    (crate / "src").mkdir(parents=True, exist_ok=True)
    (crate / "src/lib.rs").touch()
    (crate / "Cargo.toml").write_text(
        f'[package]\nname = "compat"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n{CRATE} = "={VERSION}"\n'
    )
    built(["cargo", "vendor", "--quiet", "vendor"], folder / "fetch.log", cwd=crate)
    return crate / "vendor" / CRATE


def tests(folder: Path) -> list[tuple[str, str]]:
    """(name, scenario) of each test that needs a broker."""
    text = (folder / "test.c").read_text()
    table = text[text.index("struct test tests[]") :]
    return [
        (name, NO_AUTO_CREATE if NO_AUTO_CREATE in rest else "default")
        for name, number, rest in _TEST.findall(table[: table.index("};") + 2])
        if "TEST_F_LOCAL" not in rest and int(number) < _MANUAL
    ]


def has_consumers(folder: Path, test: str) -> bool:
    """Whether a test's source speaks of consumers: without them, the group protocol changes nothing."""
    return any("consumer" in path.read_text().lower() for path in folder.glob(f"{test[:4]}-*.c*"))


def outcomes(
    folder: Path, brokers: dict[str, str], kafka: Path, logs: Path, only: str = "", protocol: str = CLASSIC
) -> Iterator[Outcome]:
    """Run the tests, one after another, against the brokers of each scenario.

    `kafka`: the folder of a Kafka distribution, as far as its scripts go. `only`: a part of a name. `protocol`: of the
    groups; the consumer protocol gets those tests alone that have consumers.
    """
    logs.mkdir(parents=True, exist_ok=True)
    known = [one for one in tests(folder) if protocol == CLASSIC or has_consumers(folder, one[0])]
    numbers = list(dict.fromkeys((name[:4], scenario) for name, scenario in known if only in name))
    runs = [(number, scenario, part) for number, scenario in numbers for part in _PARTS.get(number, ("",))]
    for number, scenario, part in runs:
        address, wanted = brokers[scenario], {name for name, of in known if of == scenario}
        conf = logs / f"{scenario}.conf"
        conf.write_text(f"bootstrap.servers={address}\ntest.timeout.multiplier=3\ntest.topic.random=true\n")
        name = f"{scenario}-{number}{part}"
        report = logs / f"{name}.json"
        report.unlink(missing_ok=True)
        environment = {
            "TESTS": number,
            **({"SUBTESTS": f"do_test_{part}:"} if part else {}),
            "TEST_SCENARIO": scenario,
            "TEST_REPORT": str(report),
            "TEST_KAFKA_VERSION": "4.1.0",
            GROUP_PROTOCOL: protocol,
            "RDKAFKA_TEST_CONF": str(conf),
            "KAFKA_PATH": str(kafka),
            "BROKERS": address,
            "LD_LIBRARY_PATH": f"{folder.parent}/src:{folder.parent}/src-cpp",
        }
        names = sorted(name for name in wanted if name.startswith(number))
        for pace in (["-Q"], []):
            began = time.monotonic()
            command = ["./test-runner", "-p1", "-L", *pace]
            code = run(command, logs / f"{name}.log", cwd=folder, env=environment, limit_s=_LIMIT_S)
            ended = list(_read(names, report, code, time.monotonic() - began))
            # In quick mode a test whose parts all are long ones passes at once, and has tried nothing.
            if not any(one.state == PASSED and one.took_s < _AT_ONCE_S for one in ended):
                break
            report.unlink()
        for one in ended:
            yield replace(one, test=named(f"{one.test} {part}".rstrip(), protocol))


def _read(names: list[str], report: Path, code: int | None, took_s: float) -> Iterator[Outcome]:
    try:
        found = json.loads(report.read_text())["tests"]
    except (OSError, ValueError):
        why = f"no end within {_LIMIT_S} s" if code is None else f"ended with {code}"
        for name in names:
            yield Outcome(SUITE, name, FAILED, took_s, why)
        return
    for name in names:
        if name not in found:
            continue
        one = found[name]
        state = {"passed": PASSED, "skipped": SKIPPED}.get(one["state"].lower(), FAILED)
        if state == FAILED and one["state"].lower() in ("not started", "n/a"):
            continue
        yield Outcome(SUITE, name, state, float(one.get("duration", took_s)), one.get("extra", ""))

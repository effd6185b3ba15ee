"""Kafka's own performance tools, which its distribution has: what its Java clients reach."""

import csv
import re
import subprocess
from pathlib import Path

import jars
from runner import CaseError

_LIMIT_S = 300
_HEAP = "512m"
_RATE = re.compile(r"^\d+ records sent, ([0-9.]+) records/sec", re.MULTILINE)


def produced(address: str, topic: str, records: int, value_bytes: int, codec: str, scratch: Path) -> float:
    """Records a second of ProducerPerformance, acks=all; starting it is not in its time."""
    told = _run(
        "ProducerPerformance",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(value_bytes), "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={address}", "acks=all", f"compression.type={codec}"),
        scratch=scratch,
    )
    rates = _RATE.findall(told)
    if not rates:
        raise CaseError(f"ProducerPerformance tells no rate:\n{told[-2000:]}")
    return float(rates[-1])  # of the whole, after those of its parts


def consumed(address: str, topic: str, records: int, group: str, scratch: Path) -> float:
    """Records a second of ConsumerPerformance, from its first fetch on: joining its group is not in its time."""
    told = _run(
        "ConsumerPerformance",
        *("--bootstrap-server", address, "--topic", topic, "--messages", str(records), "--group", group),
        *("--timeout", "60000"),
        scratch=scratch,
    )
    lines = [line for line in told.splitlines() if "," in line]
    found = dict(zip(*([cell.strip() for cell in row] for row in csv.reader(lines[-2:])), strict=False))
    if int(found.get("data.consumed.in.nMsg", 0)) < records:
        raise CaseError(f"ConsumerPerformance did not read all {records} records:\n{told[-2000:]}")
    return float(found["fetch.nMsg.sec"])


def _run(tool: str, *arguments: str, scratch: Path) -> str:
    class_path = ":".join(str(jar) for jar in jars.fetched(jars.BROKER))
    scratch.mkdir(exist_ok=True)
    logging = scratch / "log4j2.properties"
    logging.write_text("rootLogger.level=OFF\n", encoding="utf-8")
    # Kafka's clients unpack their libraries there.
    java = [jars.java(), f"-Xmx{_HEAP}", f"-Djava.io.tmpdir={scratch}", f"-Dlog4j2.configurationFile={logging}"]
    command = [*java, "-cp", class_path, f"org.apache.kafka.tools.{tool}", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if run.returncode:
        raise CaseError(f"{tool} failed:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return run.stdout

"""Programs written for confluent-kafka run with their import and their address changed, and nothing else.

`confluent/` holds such programs: between them they do what the example programs of confluent-kafka-python do that need
no SASL and no schema registry. Nothing in them knows tidelog.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.nursery import run_forked

from tidelog.log.lake import Lake

PROGRAMS = Path(__file__).parent

Run = Callable[..., list[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a program on a lake of the test's own, there before it as a broker would be; returns the lines it prints."""
    Lake(str(tmp_path / "lake")).close()

    def run(program: str, *arguments: str, stdin: str = "") -> list[str]:
        text = (PROGRAMS / program).read_text(encoding="utf-8")
        assert "tidelog" not in text
        moved = tmp_path / program
        moved.write_text(text.replace("confluent_kafka", "tidelog"), encoding="utf-8")
        ran = run_forked([sys.executable, str(moved), str(tmp_path / "lake"), *arguments], input=stdin, timeout=120)
        assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stdout + ran.stderr
        return ran.stdout.splitlines()

    return run


def test_a_shop(run: Run) -> None:
    assert run("shop.py") == [
        "created orders",
        "again: TOPIC_ALREADY_EXISTS",
        "partitions [0, 1, 2]",
        "policy delete",
        "delivered 1000, left 0, partitions of a key 1",
        "committed 1000",
        "watermarks 0 True",
        "sought 0 0",
        "consumed 1000, distinct 1000, assigned [0, 1, 2]; revoked [0, 1, 2]",
        "groups [('billing', 'EMPTY')]",
        "lag 0",
        "topics []",
    ]


def test_lines_are_produced_read_with_statistics_moved_exactly_once_and_measured(run: Run) -> None:
    assert run("lines.py", "lines", stdin="".join(f"line {i}\n" for i in range(7))) == ["7 delivered, 7 places, 0 wait"]
    records = [f"lines [0] @ {i}: None {f'line {i}'.encode()!r}" for i in range(7)]
    assert run("tail.py", "readers", "7", "lines") == ["assigned [('lines', 0)]", *records, "consumer 7 up ['lines']"]
    assert run("lag.py", "readers", "lines") == ["lines [0] at 7, lag 0"]
    assert run("lag.py", "others", "lines") == ["lines [0] at -, lag 7"]
    moved = ["2 full commits, 1 records in the last one, 0 lost", "committed 7, position 7"]
    assert run("exactly_once.py", "mover", "lines", "loud", "3") == moved
    again = ["0 full commits, 0 records in the last one, 0 lost", "committed 7, position -1001"]
    assert run("exactly_once.py", "mover", "lines", "loud", "3") == again
    assert run("tail.py", "readers", "7", "loud")[1] == "loud [0] @ 0: None b'LINE 0'"


def test_scopes_objects_and_a_logger(run: Run) -> None:
    delivered = ["None"] * 3
    assert run("scopes.py") == ["created scoped: None", *delivered, "k0 v0 0", "k1 v1 1", "k2 v2 2"]
    ann, bob = (
        f"('00000000-0000-0000-0000-00000000000{i}', {user})" for i, user in enumerate(["('ann', 30)", "('bob', 31)"])
    )
    assert run("objects.py") == ["_KEY_SERIALIZATION", f"[{ann}, {bob}]", "_VALUE_DESERIALIZATION b'no JSON'"]
    assert run("logged.py") == ["2 []", "True True"]


def test_asyncio(run: Run) -> None:
    assert run("looped.py", "loop", "2") == ["20 values, positions 20", "['assigned', 'revoked', 'statistics']"]


RESOURCE = "ConfigResource(ResourceType.TOPIC,t)"


def test_an_administrator(run: Run) -> None:
    def ask(*questions: str) -> list[str]:
        return run("ask.py", *" -- ".join(questions).split())

    assert ask(
        "create_topics t u",
        "create_topics t",
        "create_partitions t 3",
        "incremental_alter_configs t compression.type:SET:lz4 retention.ms:SET:7",
        "incremental_alter_configs t retention.ms:DELETE:",
        "alter_configs t cleanup.policy compact",
        "describe_configs TOPIC t compression.type retention.ms",
        "describe_configs BROKER 0 num.partitions",
    ) == [
        *("created t", "created u"),
        "t: TOPIC_ALREADY_EXISTS",
        "t has 3",
        *([f"changed {RESOURCE}"] * 2),
        f"changed {RESOURCE}, 2 keys",
        f"{RESOURCE} compression.type lz4 DYNAMIC_TOPIC_CONFIG False False",
        f"{RESOURCE} retention.ms 604800000 DEFAULT_CONFIG True False",
        "ConfigResource(ResourceType.BROKER,0) num.partitions 1 DEFAULT_CONFIG True False",
    ]
    run("lines.py", "u", stdin="a\nb\n")
    run("tail.py", "g", "2", "u")
    *told, offsets = ask(
        "listed",
        "list_consumer_groups EMPTY,STABLE",
        "describe_consumer_groups g none",
        "describe_topics u none",
        "describe_cluster",
        "group_offsets g u",
    )
    assert told == [
        "1 True True",
        "t [(0, 0, [0], [0], None), (1, 0, [0], [0], None), (2, 0, [0], [0], None)] None",
        "u [(0, 0, [0], [0], None), (1, 0, [0], [0], None)] None",
        "g Empty 0 None",
        *("[('g', False, 'EMPTY', 'CLASSIC')]", "[]"),
        "g EMPTY CLASSIC [] READ DELETE DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS",
        "none: GROUP_ID_NOT_FOUND",
        "u False [(0, 0, 1, 1), (1, 0, 1, 1)] 8",
        "none: UNKNOWN_TOPIC_OR_PART",
        "True [0] 0",
    ]
    written = 0 if offsets == "g [(0, 2, None), (1, -1001, None)]" else 1  # the sticky partition
    refused = "_UNSUPPORTED_FEATURE"
    assert ask(
        f"alter_offsets g u {written} 1",
        f"alter_offsets g u {written} 9",
        "list_offsets t",
        f"delete_records u {written} 1",
        "access t",
        "users u",
        "elect_leaders t",
        "delete_groups g",
        "delete_topics t u none",
    ) == [
        f"g [({written}, 1, None)]",
        "g: OFFSET_OUT_OF_RANGE",
        *("t 0 0 False", "t 0 0 False", "t 0 -1 False", "t 0 -1 False"),
        f"u {written} 1",
        *(["0: SECURITY_DISABLED", "0"] * 3),
        *(f"u: {refused}", f"all: {refused}", "0", f"u: {refused}", "0", f"u: {refused}", "0"),
        *(f"elected: {refused}", "0"),
        "deleted g",
        *("deleted t", "deleted u", "none: UNKNOWN_TOPIC_OR_PART"),
    ]

"""tidelog consume."""

import json

import pyarrow as pa
import pytest
from support.cli_calls import cli, consumed, done, lake_address, open_lake, refused

T0 = 1_700_000_000_000


@pytest.fixture
def lake():
    """A lake with the topic orders: partition 0 holds a0 to a4, partition 1 b0 and b1, partition 2 nothing.

    The records of a partition are a second apart, from T0.
    """
    address = lake_address()
    with open_lake(address) as opened:
        opened.create_topic("orders", 3)
        values = ["a0", "a1", "a2", "a3", "a4", "b0", "b1"]
        numbers = [0, 0, 0, 0, 0, 1, 1]
        table = pa.table(
            {
                "value": values,
                "key": [f"k{v}" for v in values[:-1]] + [None],
                "partition": numbers,
                "timestamp": [T0 + 1000 * int(v[1]) for v in values],
                "headers": pa.array(
                    [[("h", v.encode())] for v in values],
                    pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
                ),
            }
        )
        opened.topic("orders").append(table)
    return address


def printed(lake, *args):
    """What a consume to the end prints, by line; partitions come in any order, each in its own."""
    return sorted(done("consume", "orders", "-e", "-q", "--lake", lake, *args).stdout.splitlines())


def test_all_records_as_lines(lake):
    result = done("consume", "orders", "-e", "--lake", lake)
    assert sorted(result.stdout.splitlines()) == ["a0", "a1", "a2", "a3", "a4", "b0", "b1"]
    assert [line for line in result.stdout.splitlines() if line[0] == "a"] == ["a0", "a1", "a2", "a3", "a4"]


def test_the_ends_are_told(lake):
    lines = done("consume", "orders", "-e", "--lake", lake).stderr.splitlines()
    assert sorted(line.removesuffix(": exiting") for line in lines) == [
        "% Reached end of topic orders [0] at offset 5",
        "% Reached end of topic orders [1] at offset 2",
        "% Reached end of topic orders [2] at offset 0",
    ]
    assert [line.endswith(": exiting") for line in lines] == [False, False, True]
    assert done("consume", "orders", "-e", "-q", "--lake", lake).stderr == ""


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["-p", "1"], ["b0", "b1"]),
        (["-p", "1", "-p", "0", "-o", "-1"], ["a4", "b1"]),
        (["-o", "beginning"], ["a0", "a1", "a2", "a3", "a4", "b0", "b1"]),
        (["-o", "end"], []),
        (["-p0", "-o", "3"], ["a3", "a4"]),
        (["-p0", "-o", "5"], []),
        (["-o", "-2"], ["a3", "a4", "b0", "b1"]),
        (["-o-2", "-p0"], ["a3", "a4"]),
        (["-o", f"s@{T0 + 1000}"], ["a1", "a2", "a3", "a4", "b1"]),
        (["-o", f"s@{T0 + 1001}"], ["a2", "a3", "a4"]),
        (["-o", f"e@{T0 + 2000}"], ["a0", "a1", "b0", "b1"]),
        (["-o", f"s@{T0 + 1000}", "-o", f"e@{T0 + 1001}"], ["a1", "b1"]),
        (["-p0", "-c", "2"], ["a0", "a1"]),
        (["-p0", "-c", "99"], ["a0", "a1", "a2", "a3", "a4"]),
        (["-p1", "-f", r"%t/%p/%o/%k/%s/%T/%h/%S/%K\n"],
         [f"orders/1/0/kb0/b0/{T0}/h=b0/2/3", f"orders/1/1//b1/{T0 + 1000}/h=b1/2/-1"]),
        (["-p1", "-f", r"%k\n", "-Z"], ["NULL", "kb0"]),
        (["-p1", "-K", " = "], [" = b1", "kb0 = b0"]),
        (["-p1", "-K", ":", "-Z"], ["NULL:b1", "kb0:b0"]),
        (["-p1", "-K%"], ["%b1", "kb0%b0"]),
        (["-p1", "-D", r";\n"], ["b0;", "b1;"]),
        (["-p1", "--print-headers"], ["h=b0\tb0", "h=b1\tb1"]),
        (["-p1", "--print-headers", "-K:", "-D", r"!\n"], ["h=b0\tkb0:b0!", "h=b1\t:b1!"]),
    ],
)  # fmt: skip
def test_options(lake, args, expected):
    assert printed(lake, *args) == expected


def test_without_e_a_count_ends_it(lake):
    result = done("consume", "orders", "-p0", "-c", "5", "--lake", lake)
    assert result.stdout == "a0\na1\na2\na3\na4\n"
    assert result.stderr == ""


def test_bytes_are_printed_as_they_are(lake):
    open_lake(lake).topic("orders").append(pa.table({"value": [b"\xff\x00\n"], "partition": [2]}))
    assert done("consume", "orders", "-p2", "-e", "-D", "", "--lake", lake).stdout_bytes == b"\xff\x00\n"


@pytest.mark.parametrize("args", [["-J"], ["--json"], ["--format", "json"]])
def test_json(lake, args):
    result = done("consume", "orders", "-p1", "-e", *args, "--lake", lake)
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"topic": "orders", "partition": 1, "offset": 0, "tstype": "create", "ts": T0,
         "headers": ["h", "b0"], "key": "kb0", "payload": "b0"},
        {"topic": "orders", "partition": 1, "offset": 1, "tstype": "create", "ts": T0 + 1000,
         "headers": ["h", "b1"], "key": None, "payload": "b1"},
    ]  # fmt: skip


def test_append_time_is_named(lake):
    done("topic", "create", "stamped", "--config", "message.timestamp.type=LogAppendTime", "--lake", lake)
    done("produce", "stamped", "--lake", lake, stdin="x\n")
    assert [r["tstype"] for r in consumed(lake, "stamped")] == ["logappend"]


def test_deleted_records_are_passed_over(lake):
    open_lake(lake).delete_records("orders", {0: 4})
    assert printed(lake, "-p0") == ["a4"]
    assert printed(lake, "-p0", "-o", "-3") == ["a4"]


@pytest.mark.parametrize(
    ("code", "args", "why"),
    [
        (1, ["-p", "0", "-o", "6"], "partition 0: offsets 6 to 6 are asked for, but it has 0 to 5"),
        (1, ["-o", "3"], "partition 1: offsets 3 to 3 are asked for, but it has 0 to 2"),
        (1, ["-p", "3"], "Topic 'orders' has no partition 3"),
        (2, ["-p", "-1"], "-p"),
        (2, ["-o", "begin"], "'begin' is no position"),
        (2, ["-o", "stored"], "needs a consumer group"),
        (2, ["-o", "1", "-o", "2"], "one start and one stop"),
        (2, ["-c", "0"], "-c"),
        (2, ["-f", "%y"], "%y is no token"),
        (2, ["-K", r"\y"], r"\y is no escape"),
        (2, ["-D", r"\y"], r"\y is no escape"),
        (2, ["-J", "-f", "%s"], "-f is for text"),
        (2, ["-J", "-K:"], "-K is for text"),
        (2, ["-J", "-D:"], "-D is for text"),
        (2, ["-J", "-Z"], "-Z is for text"),
        (2, ["-J", "--print-headers"], "--print-headers is for text"),
        (2, ["--format", "json", "-f", "%s"], "-f is for text"),
        (2, ["--format", "text", "-J"], "contradict"),
        (2, ["-f", "%s", "-K:"], "leave out -K"),
        (2, ["-f", "%s", "-D:"], "leave out -D"),
        (2, ["-f", "%s", "--print-headers"], "leave out --print-headers"),
    ],
)
def test_refusals(lake, code, args, why):
    assert why in refused(code, "consume", "orders", "-e", *args, "--lake", lake)


def test_an_offset_that_is_deleted(lake):
    open_lake(lake).delete_records("orders", {0: 3})
    assert "it has 3 to 5" in refused(1, "consume", "orders", "-p0", "-o", "1", "-e", "--lake", lake)


def test_a_topic_that_is_not_there_is_not_created(lake):
    assert "Topic 'nope' does not exist" in refused(1, "consume", "nope", "-e", "--lake", lake)
    assert open_lake(lake).topics() == ["orders"]


def test_a_segment_that_is_gone_is_named(tmp_path):
    address = str(tmp_path)
    open_lake(address).create_topic("orders")
    done("produce", "orders", "--lake", address, stdin="1\n")
    done("produce", "orders", "--lake", address, stdin="2\n")
    newest = max((tmp_path / "orders").rglob("*.parquet"), key=lambda f: f.name)
    newest.unlink()
    result = cli("consume", "orders", "-e", "-q", "--lake", address)
    assert result.exit_code == 1
    assert result.stdout == "1\n"
    assert newest.name in result.stderr
    assert "is missing" in result.stderr

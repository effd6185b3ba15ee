"""tidelog produce."""

import json
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli_calls import answer, cli, consumed, done, lake_address, open_lake, refused
from support.logs import memory_lake

from tidelog.cli.produce.batches import Producing
from tidelog.cli.produce.options import Acks, CodecName, PartitionerName, ProduceOptions
from tidelog.cli.records.from_input import LineRule
from tidelog.log.appends.appender import Appender
from tidelog.log.base.errors import OutcomeUnknownError, UnknownTopicError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.records import partitioners
from tidelog.log.rules.appends import parse_acks
from tidelog.server.process.stopping import Stop


@pytest.fixture
def lake():
    """A lake with the topic orders, 3 partitions."""
    address = lake_address()
    open_lake(address).create_topic("orders", 3)
    return address


def rows(lake, *fields, topic="orders"):
    """The topic's records by offset, of each the fields that are asked for."""
    found = sorted(consumed(lake, topic), key=lambda r: (r["partition"], r["offset"]))
    return [r[fields[0]] if len(fields) == 1 else tuple(r.get(f) for f in fields) for r in found]


def produce(lake, *args, stdin=b""):
    return done("produce", "orders", "--lake", lake, *args, stdin=stdin)


def test_lines_are_values(lake):
    result = produce(lake, stdin="one\ntwo\n\nfour")
    assert rows(lake, "payload") == ["one", "two", "", "four"]
    assert result.stdout == ""
    assert result.stderr.startswith("% 4 records produced to topic orders: [")
    assert result.stderr.endswith("] 4 records up to offset 3\n")


def test_files_are_read_in_their_order(lake, tmp_path):
    (tmp_path / "a").write_bytes(b"1\n2\n")
    (tmp_path / "b").write_bytes(b"4")
    produce(lake, str(tmp_path / "a"), "-", str(tmp_path / "b"), stdin="3\n")
    assert rows(lake, "payload") == ["1", "2", "3", "4"]


def test_key_delimiter(lake):
    produce(lake, "-K", "::", stdin="a::1::x\nnone\n::2\n")
    assert sorted(rows(lake, "key", "payload"), key=str) == [("", "2"), ("a", "1::x"), (None, "none")]


def test_keys_choose_partitions_as_kafka_does(lake):
    produce(lake, "-K:", stdin="".join(f"key-{i}:{i}\n" for i in range(20)))
    names = [f"key-{i}".encode() for i in range(20)]
    expected = dict(zip(names, partitioners.partition(pa.array(names), 3).tolist(), strict=True))
    assert {r["key"].encode(): r["partition"] for r in consumed(lake, "orders")} == expected


def test_fixed_key(lake):
    produce(lake, "-K:", "-k", "all", stdin="a:1\n2\n")
    assert sorted(rows(lake, "key", "payload")) == [("a", "1"), ("all", "2")]


def test_headers(lake):
    produce(lake, "-H", "from=web=1", "-H", "empty=", "-H", "null", stdin="x\n")
    assert rows(lake, "headers") == [["from", "web=1", "empty", "", "null", None]]


def test_partition(lake):
    produce(lake, "-p", "2", "-K:", stdin="".join(f"{i}:x\n" for i in range(9)))
    assert set(rows(lake, "partition")) == {2}


def test_record_delimiter(lake):
    produce(lake, "-D", r"\0;", stdin="one\ntwo\0;three\0;")
    assert rows(lake, "payload") == ["one\ntwo", "three"]


def test_nulls(lake):
    produce(lake, "-p0", "-K:", stdin="k:\n:v\n")
    produce(lake, "-p0", "-K:", "-Z", stdin="k:\n:v\n")
    assert rows(lake, "key", "payload") == [("k", ""), ("", "v"), ("k", None), (None, "v")]


def test_codec(lake, tmp_path):
    address = str(tmp_path)
    open_lake(address).create_topic("orders")
    for codec in get_args(CodecName):
        produce(address, "-z", codec, stdin="x" * 1000)
    found = {
        pq.ParquetFile(path).metadata.row_group(0).column(2).compression.lower()
        for path in (tmp_path / "orders").rglob("*.parquet")
    }
    assert found == {"uncompressed", "gzip", "snappy", "lz4", "zstd"}


def test_choices_are_those_of_the_log():
    for codec in get_args(CodecName):
        TopicConfig.parse({}).codec(codec)
    assert {parse_acks(acks) for acks in get_args(Acks)} == {0, 1, -1}
    assert get_args(PartitionerName) == partitioners.PARTITIONERS


@pytest.mark.parametrize(("acks", "durable"), [("0", False), ("1", False), ("all", True), ("-1", True), (None, True)])
def test_acks(tmp_path, acks, durable):
    address = str(tmp_path)
    open_lake(address).create_topic("orders")
    result = produce(address, *(["--acks", acks] if acks else []), stdin="x\n")
    entry = (tmp_path / "orders" / "_delta_log" / f"{1:020d}.json").read_text()
    assert json.loads(entry.splitlines()[-1])["commitInfo"]["tidelog"]["durable"] is durable
    # With acks=0 no caller gets offsets.
    assert ("up to offset" in result.stderr) is (acks != "0")
    assert rows(address, "payload") == ["x"]


def test_partitioner(lake):
    produce(lake, "--partitioner", "round_robin", "-k", "same", stdin="1\n2\n3\n")
    assert set(rows(lake, "partition")) == {0, 1, 2}
    produce(lake, "--partitioner", "murmur3", "-k", "same", stdin="4\n5\n6\n")
    assert len({r["partition"] for r in consumed(lake, "orders") if r["payload"] >= "4"}) == 1


def test_batches_bound_what_one_append_holds(lake):
    produce(lake, "--batch-records", "2", "-p0", stdin="1\n2\n3\n4\n5\n")
    assert open_lake(lake).describe_topic("orders").partitions[0].segments == 3
    assert rows(lake, "payload") == ["1", "2", "3", "4", "5"]


def test_quiet(lake):
    assert produce(lake, "-q", stdin="x\n").stderr == ""


def test_report_as_json(lake):
    produce(lake, "-p1", stdin="x\n")
    assert answer("produce", "orders", "-p1", "--lake", lake, stdin="y\nz\n") == {
        "topic": "orders",
        "records": 2,
        "partitions": [{"partition": 1, "records": 2, "first": 1, "end": 3}],
    }


def test_a_report_on_many_partitions_is_short():
    address = lake_address()
    open_lake(address).create_topic("orders", 9)
    result = produce(address, "--partitioner", "round_robin", stdin="x\n" * 18)
    assert result.stderr == "% 18 records produced to topic orders: in 9 partitions\n"


def test_a_missing_topic_is_created_if_the_lake_allows_it(lake):
    done("produce", "new", "--lake", lake, stdin="x\n")
    assert rows(lake, "payload", topic="new") == ["x"]
    done("lake", "alter", "--config", "auto.create.topics.enable=false", "--lake", lake)
    assert "Topic 'newer' does not exist" in refused(1, "produce", "newer", "--lake", lake, stdin="x\n")


# --- JSON --------------------------------------------------------------------------------------------------


def test_json_round_trip(lake):
    first = [
        {"key": "a", "payload": "1", "headers": ["h", "v", "n", None], "ts": 1_600_000_000_000, "partition": 2},
        {"key": None, "payload": None, "ts": 1_600_000_000_001, "us": 7, "partition": 0},
        {"key": {"base64": "/w=="}, "payload": {"base64": "AP8="}, "headers": [], "ts": 3, "partition": 0},
    ]
    produce(lake, "--json", stdin="".join(json.dumps(r) + "\n" for r in first))
    out = done("consume", "orders", "-e", "--format", "json", "--lake", lake).stdout
    done("topic", "create", "copy", "--partitions", "3", "--lake", lake)
    done("produce", "copy", "-J", "--lake", lake, stdin=out)
    copy = done("consume", "copy", "-e", "-J", "--lake", lake).stdout
    assert copy == out.replace('"topic":"orders"', '"topic":"copy"')
    for record, back in zip(sorted(first, key=lambda r: r["partition"]), consumed(lake, "orders"), strict=True):
        assert {k: back[k] for k in record} == record


def test_repartition(lake):
    line = '{"payload":"x","partition":7,"key":"k"}\n'
    assert "Partition 7 does not exist" in refused_after(lake, "--json", stdin=line)
    produce(lake, "--json", "--repartition", stdin=line)
    assert rows(lake, "partition") == partitioners.partition(pa.array([b"k"]), 3).tolist()


def test_options_complete_json_records(lake):
    produce(lake, "--json", "-p1", "-k", "K", "-H", "b=2", stdin='{"payload":"x","partition":0,"headers":["a","1"]}\n')
    assert rows(lake, "key", "partition", "headers") == [("K", 1, ["a", "1", "b", "2"])]


# --- what is refused ---------------------------------------------------------------------------------------


def refused_after(lake, *args, stdin):
    """What a failing `produce` says after its report; it prints nothing to stdout."""
    said = refused(1, "produce", "orders", "--lake", lake, *args, stdin=stdin)
    report, error, message = said.partition(" error: ")
    assert report.startswith("% ")
    assert error
    return message


@pytest.mark.parametrize("batch", ["1", "2", "50000"])
def test_the_first_bad_line_ends_it_and_all_before_are_there(lake, batch):
    done("topic", "alter", "orders", "--config", "max.message.bytes=10", "--lake", lake)
    lines = "1\n2\n3\n" + "x" * 11 + "\n5\n"
    said = refused_after(lake, "--batch-records", batch, "-p0", stdin=lines)
    assert said.startswith("stdin, line 4: The record for topic 'orders' has 11 bytes")
    assert rows(lake, "payload") == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("args", "config", "lines", "why"),
    [
        (["--json"], "", '{"payload":"1"}\n{"payload":2}\n', "stdin, line 2: field 'payload' is a string"),
        (["--json"], "", '{"payload":"1"}\n\n', "stdin, line 2: not JSON"),
        (["--json"], "", '{"payload":"1"}\n{"payload":"2","partition":3}\n', "stdin, line 2: Partition 3 does not"),
        (["--json"], "", '{"payload":"1"}\n{"payload":"2","ts":9999999999999}\n', "stdin, line 2: Timestamp 9999"),
        (["-K:"], "cleanup.policy=compact", "k:1\n2\n", "stdin, line 2: Topic 'orders' is compacted"),
        ([], "max.message.bytes=10", "1\n" + "x" * 70000 + "\n", "stdin, line 2: The record for topic"),
        ([], "max.message.bytes=10", "1\n" + "x" * 70000, "stdin, line 2: "),
    ],
)
def test_bad_lines(lake, args, config, lines, why):
    if config:
        done("topic", "alter", "orders", "--config", config, "--lake", lake)
    assert refused_after(lake, *args, stdin=lines).startswith(why)
    assert rows(lake, "payload") == ["1"]


@pytest.mark.parametrize("batch", ["1", "50000"])
def test_a_line_that_a_typed_topic_refuses_is_named(lake, batch):
    schema = ["--config", "value.columns=json", "--config", 'value.schema={"type": "integer"}']
    done("topic", "alter", "orders", *schema, "--config", "topic.validate=true", "--lake", lake)
    said = refused_after(lake, "--batch-records", batch, "-p0", stdin="1\n2\nthree\n4\n")
    assert said.startswith("stdin, line 3: Topic 'orders' takes values of its schema only (topic.validate=true)")
    assert ", and the record is refused: " in said
    assert rows(lake, "payload") == ["1", "2"]


def test_a_bad_line_of_a_file_is_named_with_its_file(lake, tmp_path):
    (tmp_path / "a").write_text('{"payload":"1"}\n')
    (tmp_path / "b").write_text('{"payload":"2"}\n{"payload":"3","partition":9}\n')
    said = refused_after(lake, "--json", str(tmp_path / "a"), str(tmp_path / "b"), stdin="")
    assert said.startswith(f"{tmp_path}/b, line 2: Partition 9")
    assert sorted(rows(lake, "payload")) == ["1", "2"]


@pytest.mark.parametrize(
    ("code", "args", "why"),
    [
        (1, ["-p", "3"], "Topic 'orders' has no partition 3"),
        (1, ["/nowhere/file"], "/nowhere/file: No such file"),
        (2, ["-p", "-1"], "'-p'"),
        (2, ["-z", "brotli"], "brotli"),
        (2, ["--acks", "2"], "--acks"),
        (2, ["--partitioner", "best"], "--partitioner"),
        (2, ["--batch-records", "0"], "--batch-records"),
        (2, ["--linger-ms", "-1"], "--linger-ms"),
        (2, ["-D", ""], "an empty text divides nothing"),
        (2, ["-K", r"\q"], "is no escape"),
        (2, ["-H", "=x"], "has no name"),
        (2, ["-H", "h\udcff=1"], "is not UTF-8"),
        (2, ["--json", "-K:"], "leave out -K, -D and -Z"),
        (2, ["--json", "-D;"], "leave out -K, -D and -Z"),
        (2, ["--json", "-Z"], "leave out -K, -D and -Z"),
        (2, ["--repartition"], "--repartition goes with --json"),
        (2, ["--json", "--repartition", "-p0"], "--repartition would do nothing"),
    ],
)
def test_refusals(lake, code, args, why):
    assert why in refused(code, "produce", "orders", *args, "--lake", lake, stdin="x\n")
    assert rows(lake, "payload") == []


def test_a_bad_name(lake):
    assert "Topic name is invalid" in refused(1, "produce", "a b", "--lake", lake, stdin="x\n")


def test_records_lost_with_acks_0_are_told(lake):
    done("topic", "alter", "orders", "--config", "max.message.bytes=3", "--lake", lake)
    result = cli("produce", "orders", "--acks", "0", "-q", "--lake", lake, stdin="xxxx\n")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: An append with acks=0 to topic 'orders' failed; its records are lost.")
    assert "Traceback" not in result.stderr


# --- how long records wait ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("args", "linger_ms"), [([], 100), (["--linger-ms", "250"], 250)])
def test_linger(lake, monkeypatch, args, linger_ms):
    seen = []

    def producing(opened, asked, headers, stop):
        seen.append(asked.linger_ms)
        return Producing(opened, asked, headers, stop)

    monkeypatch.setattr("tidelog.cli.produce.batches.Producing", producing)
    produce(lake, *args, stdin="x\n")
    assert seen == [linger_ms]


class Script:
    """An input that gives these pieces; a number is a pause in seconds in which nothing comes."""

    name = "script"

    def __init__(self, clock, *pieces):
        self._clock = clock
        self._pieces = list(pieces)
        self.waits = []

    def read(self, timeout_s):
        self.waits.append(timeout_s)
        piece = self._pieces.pop(0) if self._pieces else b""
        if isinstance(piece, bytes):
            return piece
        patience = piece if timeout_s is None else min(piece, timeout_s)
        self._clock.pass_s(patience)
        return None


def run_script(linger_ms, *pieces, **options):
    """Produce the script; the numbers of records in each append, and how long each read was willing to wait."""
    lake, _, clock = memory_lake()
    lake.create_topic("orders")
    script = Script(clock, *pieces)
    work = Producing(lake, ProduceOptions(topic="orders", linger_ms=linger_ms, **options), [], Stop())
    work.run([script], b"\n", LineRule(None, empty_is_null=False).parse)
    state = lake.topic("orders").state()
    return [s.end - s.base_offset for s in state.live(0)], script.waits


def test_a_record_waits_for_others_no_longer_than_the_linger():
    appends, waits = run_script(100, b"1\n", b"2\n", 60, b"3\n")
    assert appends == [2, 1]
    assert waits[:2] == [None, pytest.approx(0.1)]
    assert waits[3] is None


def test_a_steady_trickle_does_not_hold_a_record_back():
    appends, _ = run_script(100, b"1\n", 0.06, b"2\n", 0.06, b"3\n", 0.06, b"4\n", 0.06)
    assert appends == [2, 2]


def test_without_linger_what_is_there_is_appended_at_once():
    appends, waits = run_script(0, b"1\n2\n", 60, b"3\n")
    assert appends == [2, 1]
    assert waits[1] == 0


def test_input_that_is_there_fills_a_batch_however_long_that_takes():
    appends, _ = run_script(0, b"1\n", b"2\n", b"3\n")
    assert appends == [3]


def test_a_line_that_is_not_finished_waits():
    appends, waits = run_script(100, b"12", 60, b"3\n")
    assert appends == [1]
    assert waits[:2] == [None, None]


def test_a_full_batch_does_not_wait():
    appends, _ = run_script(9_000, b"1\n2\n3\n", batch_records=2)
    assert appends == [2, 1]


def test_large_records_fill_a_batch_by_their_bytes(monkeypatch):
    monkeypatch.setattr("tidelog.cli.produce.batches.BATCH_BYTES", 100)
    appends, _ = run_script(9_000, b"\n".join([b"x" * 60] * 5))
    assert appends == [2, 2, 1]


def test_appends_that_nobody_waits_for_are_bounded():
    lake, _, clock = memory_lake()
    lake.create_topic("orders")
    work = Producing(lake, ProduceOptions(topic="orders", acks="0", batch_records=1), [], Stop())
    work.run([Script(clock, b"1\n2\n3\n4\n")], b"\n", LineRule(None, empty_is_null=False).parse)
    # The fourth batch waited for the four.
    assert lake.topic("orders").state().end(0) == 4


@pytest.mark.parametrize(
    ("error", "said", "not_said"),
    [
        (OutcomeUnknownError("no answer", request_id="r"), "Whether 2 records got into topic orders is not", "0 rec"),
        (UnknownTopicError("gone"), "0 records produced to topic orders", "is not known"),
    ],
)
def test_the_report_says_what_is_so(lake, monkeypatch, error, said, not_said):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(Appender, "append", fails)
    result = cli("produce", "orders", "--lake", lake, stdin="a\nb\n")
    assert result.exit_code == 1
    assert said in result.stderr
    assert not_said not in result.stderr

"""tidelog perf: Kafka's output for what really was produced and consumed, and the calls to the store."""

import json
import re

import pytest
from support.cli_calls import answer, consumed, done, lake_address, open_lake, refused

NUMBER = r"(\d+\.\d+|NaN|Infinity)"
TOTAL = re.compile(
    rf"(\d+)( steady state)? records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency,"
    rf" {NUMBER} ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)
HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms,"
    " fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


@pytest.fixture
def lake():
    """A lake with the topic t, 2 partitions."""
    address = lake_address()
    with open_lake(address) as opened:
        opened.create_topic("t", 2)
    return address


def produce(lake, *args):
    return done("perf", "produce", "--topic", "t", "--lake", lake, *args).stdout.splitlines()


def consume(lake, *args):
    return done("perf", "consume", "--topic", "t", "--lake", lake, *args).stdout.splitlines()


def payloads(lake):
    return [record["payload"] for record in consumed(lake, "t")]


# --- produce -----------------------------------------------------------------------------------------------


def test_produce_prints_kafkas_line(lake):
    (line,) = produce(lake, "--num-records", "300", "--record-size", "100", "--throughput", "-1")
    assert TOTAL.fullmatch(line)[1] == "300"
    found = payloads(lake)
    assert len(set(found)) == 300
    assert all(re.fullmatch("[A-Z]{100}", value) for value in found)


def test_values_from_a_file(lake, tmp_path):
    (tmp_path / "values").write_text("one\ntwo\nthree\n")
    lines = produce(lake, "--num-records", "90", "--payload-file", str(tmp_path / "values"))
    assert lines[:2] == [f"Reading payloads from: {tmp_path / 'values'}", "Number of messages read: 3"]
    assert TOTAL.fullmatch(lines[2])
    assert set(payloads(lake)) == {"one", "two", "three"}


def test_another_delimiter(lake, tmp_path):
    (tmp_path / "values").write_text("one;two")
    produce(lake, "--num-records", "20", "--payload-file", str(tmp_path / "values"), "--payload-delimiter", ";")
    assert set(payloads(lake)) == {"one", "two"}


def test_counted_values(lake):
    produce(lake, "--num-records", "12", "--payload-monotonic")
    assert sorted(payloads(lake), key=int) == [str(number) for number in range(12)]


def test_after_a_warm_up_there_is_a_second_line(lake):
    lines = produce(lake, "--num-records", "50", "--record-size", "5", "--warmup-records", "20")
    assert lines[0] == "Warmup first 20 records. Steady state results will print after the complete test summary."
    assert [TOTAL.fullmatch(line).group(1, 2) for line in lines[1:]] == [("50", None), ("30", " steady state")]


def test_throughput_is_kept(lake):
    found = answer(
        "perf", "produce", "--topic", "t", "--lake", lake, "--num-records", "60", "--record-size", "5",
        "--throughput", "300",
    )  # fmt: skip
    assert found["elapsed_ms"] >= 195
    assert found["records_per_s"] <= 310


def test_the_producers_configuration(lake, tmp_path):
    """From a file, from the option, and as Kafka's tool takes several behind it; later ones count."""
    (tmp_path / "p").write_text("# comment\nacks = 1\nkey.serializer=ByteArraySerializer\nmessage.max.bytes=2000\n")
    result = done(
        "perf", "produce", "--topic", "t", "--lake", lake, "--num-records", "3", "--record-size", "5",
        "--producer.config", str(tmp_path / "p"), "--producer-props", "bootstrap.servers=x:9092", "linger.ms=1",
        "compression.type=zstd",
    )  # fmt: skip
    assert "bootstrap.servers is ignored: the lake is named by --lake." in result.stderr
    message = refused(
        1, "perf", "produce", "--topic", "t", "--lake", lake, "--num-records", "1", "--record-size", "3000",
        "--producer.config", str(tmp_path / "p"),
    )  # fmt: skip
    assert "2000" in message


@pytest.mark.parametrize(
    "options",
    [
        ["--transactional-id", "mine"],
        ["--transaction-duration-ms", "5"],
        ["--producer-props", "transactional.id=mine"],
    ],
    ids=["id", "duration", "property"],
)
def test_in_transactions(lake, options):
    (line,) = produce(lake, "--num-records", "100", "--record-size", "5", "--throughput", "2000", *options)
    assert TOTAL.fullmatch(line)[1] == "100"
    assert len(payloads(lake)) == 100
    names = [entry["transactional_id"] for entry in answer("transaction", "list", "--lake", lake)]
    assert [name == "mine" or name.startswith("performance-producer-") for name in names] == [True]


def test_as_json(lake):
    found = answer(
        "perf", "produce", "--topic", "t", "--lake", lake, "--num-records", "50", "--record-size", "10",
        "--warmup-records", "10", "--storage-calls",
    )  # fmt: skip
    assert (found["topic"], found["records"], found["bytes"], found["failed"]) == ("t", 50, 500, 0)
    assert set(found["latency_ms"]) == {"avg", "max", "p50", "p95", "p99", "p99.9"}
    assert found["steady"]["records"] == 40
    calls = found["storage"]["calls"]
    assert calls["put"] >= 1
    assert calls["conditional_put"] >= 1
    assert found["storage"]["real"] is False
    assert found["storage"]["per_1000_records"]["put"] == calls["put"] * 20


# --- consume -----------------------------------------------------------------------------------------------


def test_consume_prints_kafkas_two_lines(lake):
    produce(lake, "--num-records", "400", "--record-size", "1024")
    header, line = consume(lake, "--messages", "400")
    assert header == HEADER
    start, end, mb, *_ = fields = line.split(", ")
    assert len(fields) == 10
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", start)
    assert start <= end
    assert mb == "0.3906"
    assert fields[4] == "400"
    assert int(fields[6]) + int(fields[7]) >= 0
    assert all(re.fullmatch(r"\d+\.\d{4}", fields[i]) for i in (3, 5, 8, 9))


def test_consume_says_that_records_did_not_come(lake):
    produce(lake, "--num-records", "10", "--record-size", "5")
    warning, line = consume(lake, "--num-records", "11", "--timeout", "1500", "--hide-header")
    assert warning == (
        "WARNING: Exiting before consuming the expected number of messages: timeout (1500 ms) exceeded. You can use the"
        " --timeout option to increase the timeout."
    )
    assert line.split(", ")[4] == "10"


def test_a_group_goes_on_where_it_stands(lake):
    produce(lake, "--num-records", "10", "--record-size", "5")
    consume(lake, "--messages", "10", "--group", "g")
    produce(lake, "--num-records", "7", "--record-size", "5")
    assert consume(lake, "--messages", "7", "--group", "g")[1].split(", ")[4] == "7"


def test_from_latest(lake):
    produce(lake, "--num-records", "10", "--record-size", "5")
    assert consume(lake, "--messages", "1", "--from-latest", "--timeout", "500")[-1].split(", ")[4] == "0"


def test_details_instead_of_a_sum(lake):
    produce(lake, "--num-records", "2000", "--record-size", "5")
    lines = consume(
        lake, "--messages", "2000", "--show-detailed-stats", "--reporting-interval", "1", "--date-format", "HH:mm"
    )
    assert lines[0].startswith("time, threadId, data.consumed.in.MB")
    assert len(lines) > 1
    for line in lines[1:]:
        assert re.fullmatch(r"\d\d:\d\d, 0, (\d+\.\d{4}, ){2}\d+, \d+\.\d{4}, \d+, -?\d+, \d+\.\d{4}, \d+\.\d{4}", line)


def test_consume_as_json(lake):
    produce(lake, "--num-records", "30", "--record-size", "10")
    found = answer(
        "perf", "consume", "--topic", "t", "--lake", lake, "--messages", "30", "--group", "g", "--storage-calls"
    )
    assert (found["topic"], found["group"], found["records"], found["bytes"]) == ("t", "g", 30, 300)
    assert found["start_ms"] + found["rebalance_ms"] + found["fetch_ms"] == found["end_ms"]
    assert found["storage"]["calls"]["get"] >= 1


# --- storage calls -----------------------------------------------------------------------------------------


def test_a_report_of_storage_calls_with_ones_own_prices(lake, tmp_path):
    (tmp_path / "p.toml").write_text('name = "ours"\n[requests]\nget = 0\nput = 1\nlist = 0\ndelete = 0\n')
    lines = produce(
        lake, "--num-records", "1000", "--record-size", "10", "--storage-calls", "--prices", str(tmp_path / "p.toml")
    )
    assert TOTAL.fullmatch(lines[0])
    assert lines[1] == "Storage calls that an object store would be sent, at prices of ours:"
    rows = {fields[0]: fields[1:] for fields in (line.split() for line in lines[3:])}
    puts, creates = int(rows["put"][0]), int(rows["conditional_put"][0])
    assert float(rows["put"][-1]) == pytest.approx(puts / 1000)
    assert float(rows["all"][-1]) == pytest.approx((puts + creates) / 1000)
    assert lines[-1].startswith("Opening the lake and the topic took ")


# --- wrong usage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "exactly one of --record-size, --payload-file and --payload-monotonic"),
        (["--record-size", "5", "--payload-monotonic"], "exactly one of"),
        (["--record-size", "0"], "--record-size"),
        (["--record-size", "5", "--warmup-records", "10"], "leaves nothing to measure"),
        (["--record-size", "5", "--throughput", "0"], "never ends"),
        (["--record-size", "5", "--producer-props", "acks"], "'acks' is not of the form key=value"),
        (["--record-size", "5", "--producer-props", "akcs=1"], "akcs"),
        (["--record-size", "5", "--producer-props", "acks=7"], "acks"),
        (["--record-size", "5", "--transaction-duration-ms", "0"], "--transaction-duration-ms"),
        (["--record-size", "5", "--prices", __file__], "--prices goes with --storage-calls"),
        (["--record-size", "5", "--storage-calls", "--prices", __file__], "is no TOML"),
    ],
)
def test_produce_refuses(lake, options, words):
    assert words in refused(2, "perf", "produce", "--topic", "t", "--lake", lake, "--num-records", "10", *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--messages", "0"], "--messages"),
        (["--messages", "1", "--date-format", "EEE"], "is no part of a date"),
        (["--messages", "1", "--reporting-interval", "0"], "--reporting-interval"),
    ],
)
def test_consume_refuses(lake, options, words):
    assert words in refused(2, "perf", "consume", "--topic", "t", "--lake", lake, *options)


def test_an_empty_payload_file(lake, tmp_path):
    (tmp_path / "empty").write_text("")
    message = json.dumps(
        refused(
            2, "perf", "produce", "--topic", "t", "--lake", lake, "--num-records", "1", "--format", "json",
            "--payload-file", str(tmp_path / "empty"),
        )
    )  # fmt: skip
    assert "there is nothing to produce" in message


def test_a_topic_that_is_missing_and_may_not_be_made(lake):
    done("lake", "alter", "--config", "auto.create.topics.enable=false", "--lake", lake)
    for words in (["produce", "--num-records", "1", "--record-size", "1"], ["consume", "--messages", "1"]):
        assert "'u' does not exist" in refused(1, "perf", *words, "--topic", "u", "--lake", lake, "--format", "json")

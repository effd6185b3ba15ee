"""tidelog maintain."""

import json
import signal
import time

import pytest
from support.cli_calls import answer, cli, consumed, done, lines_of, open_lake, process, refused

DAY_MS = 86_400_000


def now_ms():
    return time.time_ns() // 1_000_000


@pytest.fixture
def lake(tmp_path):
    """A lake on disk with the topics clicks and orders, ten records each, one a segment."""
    address = str(tmp_path / "lake")
    with open_lake(address) as opened:
        for name in ("clicks", "orders"):
            opened.create_topic(name, partitions=1)
    for name in ("clicks", "orders"):
        done("produce", name, "--lake", address, "--batch-records", "1", stdin="".join(f"{n}\n" for n in range(10)))
    return tmp_path / "lake"


def described(lake, topic):
    return answer("topic", "describe", topic, "--lake", str(lake))["partitions"][0]


def test_everything_is_told_as_a_table(lake):
    before = consumed(str(lake), "orders")
    lines = done("maintain", "--lake", str(lake)).stdout.splitlines()
    assert lines[0].startswith(f"file://{lake}  run ")
    assert [line.split()[:2] for line in lines[2:]] == [
        ["clicks", "retention"],
        ["clicks", "merge"],
        ["clicks", "purge"],
        ["orders", "retention"],
        ["orders", "merge"],
        ["orders", "purge"],
        ["__consumer_offsets", "offsets"],
    ]
    assert consumed(str(lake), "orders") == before
    assert described(lake, "orders")["segments"] == 1
    assert done("check", "--deep", "--lake", str(lake)).exit_code == 0


def test_one_part_of_one_topic_at_a_time_of_its_own(lake):
    later = str(now_ms() + 8 * DAY_MS)
    told = answer("maintain", "--lake", str(lake), "--only", "retention", "--topic", "orders", "--now", later)
    assert (told["now_ms"], told["failed"], told["dry_run"]) == (int(later), False, False)
    (topic,) = told["topics"]
    assert set(topic) == {"topic", "retention", "deleted_meanwhile", "failures"}
    assert (topic["topic"], topic["retention"]["starts"], topic["retention"]["segments"]) == ("orders", {"0": 10}, 10)
    assert described(lake, "orders")["start"] == 10
    assert described(lake, "clicks")["start"] == 0


def test_a_dry_run_changes_nothing(lake):
    told = answer("maintain", "--lake", str(lake), "--dry-run", "--pattern", "ord.*")
    assert [topic["topic"] for topic in told["topics"]] == ["orders"]
    assert told["topics"][0]["merge"]["files"] == {"before": 10, "after": 1}
    assert described(lake, "orders")["segments"] == 10
    assert "would do:" in done("maintain", "--lake", str(lake), "--dry-run").stdout


def test_what_fails_is_named_and_the_rest_is_done(lake):
    next((lake / "orders" / "partition=0").glob("*.parquet")).unlink()
    result = cli("maintain", "--lake", str(lake), "--only", "merge", "--format", "json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["failed"] is True
    assert [(t["topic"], [f["partition"] for f in t["failures"]]) for t in told["topics"]] == [
        ("clicks", []),
        ("orders", [0]),
    ]
    assert described(lake, "clicks")["segments"] == 1
    assert described(lake, "orders")["segments"] == 10
    text = cli("maintain", "--lake", str(lake), "--only", "merge")
    assert text.exit_code == 1
    assert "FAILED partition 0: Segment orders/partition=0/" in text.stdout


def test_a_topic_that_is_none_is_named(lake):
    result = cli("maintain", "--lake", str(lake), "--topic", "nowhere", "--topic", "orders", "--only", "merge")
    assert result.exit_code == 1
    assert "Topic 'nowhere' does not exist." in result.stdout
    assert described(lake, "orders")["segments"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "everything"], "'everything' is not one of"),
        (["--now", "tomorrow"], "unable to parse string as an integer"),
        (["--now", "-1"], "greater than or equal to 0"),
        (["--now", "253402300800000"], "less than or equal to 253402300799999"),
        (["--topic", "orders", "--pattern", "o.*"], "give --topic or --pattern"),
        (["--pattern", "("], "no regular expression"),
        (["--only", "offsets", "--topic", "orders"], "leave out --topic and --pattern"),
        (["--every", "soon"], "--every: 'soon' is no interval"),
        (["--every", "0s"], "no interval"),
        (["--every", "5m", "--now", "1"], "give one of them"),
    ],
)
def test_wrong_usage(lake, arguments, said):
    assert said in refused(2, "maintain", "--lake", str(lake), *arguments)


def test_a_lake_that_is_not_there(tmp_path):
    assert "There is no lake" in refused(1, "maintain", "--lake", str(tmp_path / "nowhere"))


def test_it_goes_on_until_it_is_interrupted(lake):
    running = process("maintain", "--lake", str(lake), "--only", "retention", "--every", "100ms", "--format", "json")
    try:
        runs = [json.loads(line) for line, _ in zip(lines_of(running.stdout), range(3), strict=False)]
    finally:
        running.send_signal(signal.SIGINT)
        code = running.wait(30)
    assert len({run["run"] for run in runs}) == 3
    assert code == 130

"""tidelog check."""

import json

import pytest
from support.cli_calls import answer, cli, done, open_lake, refused

from tidelog.check.lake import Progress
from tidelog.cli.check import _progress_bar


@pytest.fixture
def lake(tmp_path):
    """A lake on disk with the topics good and orders, two records each."""
    address = str(tmp_path / "lake")
    with open_lake(address) as opened:
        for name in ("good", "orders"):
            opened.create_topic(name)
    for name in ("good", "orders"):
        done("produce", name, "--lake", address, "--batch-records", "1", stdin="1\n2\n")
    return tmp_path / "lake"


def newest_segment(lake):
    return max((lake / "orders").rglob("*.parquet"), key=lambda f: f.name)


def newest_entry(lake):
    return max((lake / "orders" / "_delta_log").glob("*.json"))


def test_green(lake):
    shown = answer("check", "--lake", str(lake))
    assert shown["green"] is True
    assert [(t["topic"], t["segments"], t["records"]) for t in shown["topics"]] == [("good", 2, 0), ("orders", 2, 0)]
    text = done("check", "--lake", str(lake)).stdout.splitlines()
    assert text[0] == f"file://{lake}  2 topics, logs and files; --deep reads the records, too"
    assert text[-1] == "green: no errors, no warnings"
    assert ["orders", "3", "-", "1", "2"] in [line.split()[:5] for line in text]


def test_deep_reads_the_records(lake):
    assert [t["records"] for t in answer("check", "--deep", "--lake", str(lake))["topics"]] == [2, 2]
    assert "every record read" in done("check", "--deep", "--lake", str(lake)).stdout
    segment = newest_segment(lake)
    data = bytearray(segment.read_bytes())
    data[40:60] = b"\xff" * 20
    segment.write_bytes(data)
    assert cli("check", "--lake", str(lake)).exit_code == 0
    assert cli("check", "--deep", "--lake", str(lake)).exit_code == 3


def test_an_error_is_told_and_sets_the_exit_code(lake):
    newest_segment(lake).unlink()
    result = cli("check", "--lake", str(lake))
    assert result.exit_code == 3
    lines = result.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("error  orders, "))
    assert lines[at].endswith("  segment-missing")
    assert lines[at + 2].startswith("  -> ")
    assert lines[-1] == "1 error, 0 warnings, 0 notes"
    shown = cli("check", "--format", "json", "--lake", str(lake))
    assert shown.exit_code == 3
    assert [f["kind"] for f in json.loads(shown.stdout)["findings"]] == ["segment-missing"]


def test_only_some_topics(lake):
    newest_segment(lake).unlink()
    assert [t["topic"] for t in answer("check", "good", "--lake", str(lake))["topics"]] == ["good"]
    assert cli("check", "good", "orders", "--lake", str(lake)).exit_code == 3


def test_a_lake_that_does_not_open_is_checked(lake):
    (lake / "__lake.json").write_text("{")
    result = cli("check", "--lake", str(lake))
    assert result.exit_code == 3
    assert "lake-file-broken" in result.stdout


@pytest.fixture
def torn(lake):
    """The lake after the newest entry of orders lost its end."""
    entry = newest_entry(lake)
    entry.write_bytes(entry.read_bytes()[:-5])
    return lake


def test_repair_changes_nothing_unless_it_is_told_to(torn):
    before = newest_entry(torn).read_bytes()
    assert cli("check", "--lake", str(torn)).exit_code == 3
    plan = done("check", "--repair", "--lake", str(torn)).stdout
    assert "would  orders, entry 2" in plan
    assert "Nothing was changed. Do it with: tidelog check --repair --execute" in plan
    assert newest_entry(torn).read_bytes() == before
    did = done("check", "--repair", "--execute", "--lake", str(torn)).stdout
    assert "done  orders, entry 2" in did
    assert "risk: " in did
    assert done("check", "--lake", str(torn)).exit_code == 0
    assert done("consume", "orders", "-e", "-q", "--lake", str(torn)).stdout == "1\n2\n"


def test_repair_as_json(torn):
    plan = answer("check", "--repair", "--lake", str(torn))
    assert (plan["executed"], len(plan["steps"]), plan["report"]["green"]) == (False, 1, True)
    assert answer("check", "--repair", "--execute", "--lake", str(torn))["executed"] is True


def test_repair_of_some_topics(torn):
    assert answer("check", "good", "--repair", "--lake", str(torn))["steps"] == []
    assert "Nothing to mend." in done("check", "good", "--repair", "--lake", str(torn)).stdout


def test_what_repair_leaves_alone_is_told(lake):
    newest_segment(lake).unlink()
    result = cli("check", "--repair", "--lake", str(lake))
    assert result.exit_code == 3
    assert "left alone  orders, " in result.stdout
    assert "Afterwards it would be: 1 error" in result.stdout


def test_lost_records_are_given_up_and_no_others(lake):
    address = str(lake)
    lost = newest_segment(lake)
    lost.unlink()
    done("produce", "orders", "--lake", address, stdin="3\n")
    would = json.loads(cli("check", "--repair", "--give-up", "--format", "json", "--lake", address).stdout)
    path = str(lost.relative_to(lake / "orders"))
    named = {"topic": "orders", "path": path, "partition": 0, "base_offset": 1, "end": 2, "records": 1}
    assert [{**named, "why": one["why"], "done": False} for one in would["given_up"]] == would["given_up"]
    assert would["refusals"] == []
    told = cli("check", "--repair", "--give-up", "--lake", address).stdout
    assert "Give up offsets 1 to 2 of partition 0 (1 record)." in told
    assert told.rstrip().endswith("tidelog check --repair --give-up --execute")
    did = answer("check", "--repair", "--give-up", "--execute", "--lake", address)
    assert [one["done"] for one in did["given_up"]] == [True]
    assert done("consume", "orders", "-e", "-f", "%o:%s\n", "--lake", address).stdout == "0:1\n2:3\n"
    assert answer("check", "--deep", "--lake", address)["green"]
    assert answer("check", "--repair", "--give-up", "--execute", "--lake", address)["given_up"] == []


def test_damaged_records_are_given_up_when_every_record_is_read(lake):
    segment = newest_segment(lake)
    data = bytearray(segment.read_bytes())
    data[-40:-8] = b"\xff" * 32
    segment.write_bytes(data)
    where = ["--lake", str(lake)]
    assert answer("check", "--repair", "--give-up", "--execute", *where)["given_up"] == []
    assert len(answer("check", "--deep", "--repair", "--give-up", "--execute", *where)["given_up"]) == 1
    assert done("consume", "orders", "-e", "-f", "%o:%s\n", *where).stdout == "0:1\n"


@pytest.mark.parametrize(
    ("code", "args", "why"),
    [
        (1, ["nope"], "Topic 'nope' does not exist"),
        (2, ["--execute"], "--execute goes with --repair"),
        (2, ["--give-up"], "--give-up goes with --repair"),
        (2, ["--repair", "--deep"], "leave out --deep"),
    ],
)
def test_refusals(lake, code, args, why):
    assert why in refused(code, "check", *args, "--lake", str(lake))


def test_a_folder_that_is_not_there_is_no_lake(tmp_path):
    assert "There is no lake at" in refused(1, "check", "--lake", str(tmp_path / "nope"))


def test_a_person_sees_how_far_a_deep_check_is(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with _progress_bar(deep=True) as tell:
        tell(Progress("orders", 3, 7, 2048, 4096))
    assert "orders: 3 of 7 segments, 2.0 KiB" in capsys.readouterr().err
    with _progress_bar(deep=False) as tell:
        assert tell is None

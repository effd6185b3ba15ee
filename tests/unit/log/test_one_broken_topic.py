"""One topic that can't be opened is named wherever topics are gone through, and hides none of the others."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli_calls import cli
from support.consumers import consumer, fill, poll_some, text

from tidelog import AdminClient, KafkaError, Producer
from tidelog.log.base.errors import CorruptLogError, StoragePermissionError, StorageUnavailableError, TidelogError
from tidelog.log.delta.layout import entry_path
from tidelog.log.lake import Lake
from tidelog.log.storage import LocalStorage
from tidelog.sources.catalog import Catalog
from tidelog.sources.options import parse_batch

Breaks = Callable[[Path, pytest.MonkeyPatch], Any]


def log_file(folder: Path, version: int) -> Path:
    return folder / entry_path(version)


def newer(folder: Path, _: pytest.MonkeyPatch) -> None:
    first = log_file(folder, 0)
    first.write_text(re.sub(r'"tidelog.format":"\d+"', '"tidelog.format":"99"', first.read_text()))


def denied(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a folder of another owner gives, or a role that may read one topic only."""
    fails(monkeypatch, StoragePermissionError("broken/_delta_log: permission denied"))


def fails(monkeypatch: pytest.MonkeyPatch, error: TidelogError) -> None:
    get = LocalStorage.get

    def failing(self: LocalStorage, path: str) -> bytes:
        if path.startswith("broken/"):
            raise error
        return get(self, path)

    monkeypatch.setattr(LocalStorage, "get", failing)


BREAKS: dict[str, Breaks] = {
    "torn": lambda folder, _: log_file(folder, 1).write_bytes(b""),
    "garbage": lambda folder, _: log_file(folder, 1).write_bytes(b"\x00\xff{"),
    "a line missing": lambda folder, _: log_file(folder, 1).write_bytes(log_file(folder, 1).read_bytes()[:-300]),
    "first entry lost": lambda folder, _: log_file(folder, 0).unlink(),
    "newer": newer,
    "denied": denied,
}


@pytest.fixture(params=BREAKS.values(), ids=BREAKS)
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """A lake with topics `broken` and `sound`, opened by a process that starts now."""
    with Lake(tmp_path / "lake") as before:
        for name in ("broken", "sound"):
            before.create_topic(name)
            fill(before, name, "a", "b")
    request.param(tmp_path / "lake/broken", monkeypatch)
    with Lake(tmp_path / "lake", create=False) as opened:
        yield opened


def error_of(lake: Lake) -> TidelogError:
    with pytest.raises(TidelogError) as refusal:
        lake.describe_topic("broken")
    return refusal.value


def test_the_library(lake: Lake):
    assert lake.topics() == ["broken", "sound"]
    assert error_of(lake).kafka_code != -1
    assert lake.offsets("sound") == {0: (0, 2)}
    lake.create_topic("another")
    with pytest.raises(TidelogError):
        lake.create_topic("broken")
    assert lake.topics() == ["another", "broken", "sound"]


def test_topic_list(lake: Lake):
    why = str(error_of(lake))
    named = cli("topic", "list", "--lake", lake.uri)
    assert (named.exit_code, named.stdout) == (1, "broken\nsound\n")
    assert named.stderr == f"error: Topic 'broken' can't be opened. {why}\n"
    listed = cli("topic", "list", "--lake", lake.uri, "--format", "json")
    assert listed.exit_code == 1
    broken, sound = json.loads(listed.stdout)
    assert broken["name"] == "broken"
    assert broken["error"]["message"] == why
    assert (sound["name"], sound["offsets"]) == ("sound", 2)


def test_topic_list_at_a_terminal(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    rows = cli("topic", "list", "--lake", lake.uri).stdout.splitlines()
    assert any("broken" in row and row.count("broken") == 2 for row in rows)
    assert any("sound" in row for row in rows)


def test_other_commands(lake: Lake):
    assert "2 topics" in cli("lake", "describe", "--lake", lake.uri).stdout
    assert cli("check", "--lake", lake.uri, "sound").exit_code == 0
    checked = cli("check", "--lake", lake.uri)
    assert checked.exit_code == 3
    assert "sound" in checked.stdout
    assert cli("topic", "describe", "sound", "--lake", lake.uri).exit_code == 0
    producers = cli("producer", "list", "--lake", lake.uri)
    assert producers.exit_code == 1
    assert producers.stderr.startswith("error: Topic 'broken' can't be opened.")


def test_maintenance(lake: Lake):
    done = cli("maintain", "--lake", lake.uri, "--format", "json")
    assert done.exit_code == 1
    by_topic = {one["topic"]: one for one in json.loads(done.stdout)["topics"]}
    assert by_topic["broken"]["failures"]
    assert not by_topic["sound"]["failures"]
    assert by_topic["sound"]["merge"] is not None


def test_metadata_of_clients(lake: Lake):
    code = error_of(lake).kafka_code
    with Producer({"lake": lake.uri}) as producer, AdminClient({"lake": lake.uri}) as admin, consumer(lake) as reader:
        for client in (producer, admin, reader):
            topics = client.list_topics(timeout=30).topics
            assert topics["broken"].error == KafkaError(code)
            assert topics["broken"].partitions == {}
            assert topics["sound"].error is None
            assert list(topics["sound"].partitions) == [0]


@pytest.mark.parametrize("subscription", [["^.*"], ["broken", "sound"]], ids=["pattern", "names"])
def test_a_consumer_reads_the_others_and_is_told(lake: Lake, subscription: list[str]):
    code = error_of(lake).kafka_code
    with consumer(lake) as reader:
        reader.subscribe(subscription)
        told, *read = sorted(poll_some(reader, 3), key=lambda m: m.error() is None)
        assert told.error() == KafkaError(code)
        assert "Subscribed topic not available: broken: " in told.error().str()
        assert [text(m) for m in read] == ["a", "b"]


def test_a_query_fails_by_its_name_only_where_its_pattern_matches_it(lake: Lake):
    others = Catalog(lake, parse_batch({"lake": "/unused", "subscribePattern": "^s.*"}, None))
    others.refresh()
    assert {p.topic for p in others.assigned()} == {"sound"}
    everything = Catalog(lake, parse_batch({"lake": "/unused", "subscribePattern": ".*"}, None))
    with pytest.raises(type(error_of(lake)), match="broken"):
        everything.refresh()


def test_a_store_that_is_away_breaks_no_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It passes, and what could not be looked at would be taken for broken."""
    with Lake(tmp_path) as lake:
        lake.create_topic("broken")
    fails(monkeypatch, StorageUnavailableError("away"))
    with pytest.raises(StorageUnavailableError), Lake(tmp_path) as lake:
        lake.topics()
    result = cli("topic", "list", "--lake", str(tmp_path))
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "error: away\n")


def test_a_log_without_its_first_entry_is_no_new_one(tmp_path: Path):
    """Else a topic that is created in its place would end where the old entries begin."""
    with Lake(tmp_path) as lake:
        fill(lake, "t", "a", "b")
    log_file(tmp_path / "t", 0).unlink()
    with Lake(tmp_path) as lake:
        with pytest.raises(CorruptLogError, match="lost its first entry"):
            lake.create_topic("t")
        with pytest.raises(CorruptLogError, match="lost its first entry"):
            fill(lake, "t", "c")
    assert not log_file(tmp_path / "t", 0).exists()

"""The sink's driver: entries, repeats, refusals, and which files stay when something breaks off."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType
from support.logs import memory_lake

from tidelog.log.base.errors import (
    InvalidOptionError,
    OutcomeUnknownError,
    StaleBatchError,
    TopicChangedError,
)
from tidelog.log.lake import Lake
from tidelog.sinks import commits
from tidelog.sinks.options import WriteId, parse_batch, parse_stream
from tidelog.sinks.tasks import Segments, open_target, stage
from tidelog.sinks.writer import BatchWriter, StagedMessage, StreamWriter

QUERY = "6f9d3f2e-0000-4000-8000-000000000001"
SCHEMA = StructType([StructField("topic", StringType()), StructField("value", StringType())])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path / "lake"))
    for topic in ("a", "b"):
        lake.create_topic(topic)
    return lake


def staged(lake: Lake, **values: str) -> Segments:
    """A task's segments: staged(lake, a="1") is one record for topic `a`."""
    batch = pa.record_batch({"topic": list(values), "value": list(values.values())})
    return stage([batch], ["topic", "value"], parse_stream({"lake": lake.uri}, None), lake, None, 0)


def committed(lake: Lake, topic: str) -> list[str]:
    return [v.decode() for b in lake.topic(topic).read(0) for v in b.column("value").to_pylist()]


def files(lake: Lake, topic: str) -> int:
    return len(list((Path(lake.uri.removeprefix("file://")) / topic).glob("partition=*/*")))


def run(lake: Lake, batch_id: int, *tasks: Segments, **options: str) -> None:
    """A streaming batch: option `topic` where it is given, else by a `topic` column."""
    commits.commit_stream(lake, tasks, parse_stream({"lake": lake.uri, **options}, None), QUERY, batch_id)


@pytest.mark.parametrize(("acks", "syncs"), [("all", 1), ("1", 0)])
def test_a_segment_is_synced_by_its_task_alone(acks: str, syncs: int) -> None:
    """A sync costs a small batch as much as all else that it does."""
    memory, found = memory_lake()[1], Counter[str]()
    memory.hook = lambda method, path, phase: found.update([path] if (method, phase) == ("sync", "before") else [])
    lake = Lake("memory://t", storage=memory)
    lake.create_topic("a")
    options, target = parse_stream({"lake": lake.uri, "topic": "a", "acks": acks}, None), open_target(lake, "a", None)
    for batch_id in range(2):
        segments = stage([pa.record_batch({"value": ["x"]})], ["value"], options, lake, target, 0)
        commits.commit_stream(lake, [segments], options, QUERY, batch_id)
    live = lake.topic("a").state().all_segments()
    assert [found[f"a/{segment.path}"] for segment in live] == [syncs, syncs]


def test_a_batch_is_an_entry_in_each_topic_and_its_repeat_none(lake: Lake) -> None:
    run(lake, 0, staged(lake, a="1", b="2"), staged(lake, a="3"))
    before = {topic: lake.topic(topic).state().version for topic in ("a", "b")}
    run(lake, 0, staged(lake, a="1", b="2"), staged(lake, a="3"))

    assert (committed(lake, "a"), committed(lake, "b")) == (["1", "3"], ["2"])
    assert {topic: lake.topic(topic).state().version for topic in ("a", "b")} == before
    assert (files(lake, "a"), files(lake, "b")) == (2, 1)


def test_with_option_topic_a_batch_is_one_entry_with_the_querys_marker(lake: Lake) -> None:
    run(lake, 0, staged(lake, a="1"), staged(lake, a="2"), topic="a")
    version = lake.topic("a").state().version
    run(lake, 0, staged(lake, a="1"), topic="a")

    assert (committed(lake, "a"), files(lake, "a")) == (["1", "2"], 2)
    assert (lake.topic("a").state().version, lake.topic("a").state().txn(f"tidelog/sink/{QUERY}")) == (version, 0)
    assert not (Path(lake.uri.removeprefix("file://")) / "__transaction_state").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topic": "a"}, "Topic 'a' has already taken batch 5 of this streaming query, and now gets batch 4"),
        ({}, "The lake has already taken batch 5 of this streaming query, and now gets batch 4"),
    ],
)
def test_a_lower_batch_is_an_error_and_leaves_no_files(lake: Lake, options: dict[str, str], words: str) -> None:
    run(lake, 5, staged(lake, a="1"), **options)
    with pytest.raises(StaleBatchError, match=words):
        run(lake, 4, staged(lake, a="old"), **options)

    assert (committed(lake, "a"), files(lake, "a")) == (["1"], 1)


@pytest.mark.parametrize("options", [{"topic": "a"}, {}])
def test_a_topic_created_again_refuses_segments_of_the_old_one(lake: Lake, options: dict[str, str]) -> None:
    late = staged(lake, a="1")
    lake.delete_topic("a")
    lake.create_topic("a")
    with pytest.raises(TopicChangedError):
        run(lake, 0, late, **options)
    assert files(lake, "a") == 0


def test_an_unknown_outcome_keeps_the_segments(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry may be there, and then it needs them."""
    waiting = staged(lake, a="1")

    def unknown(*args: object, **more: object) -> None:
        raise OutcomeUnknownError("no answer", request_id="1")

    monkeypatch.setattr("tidelog.log.topic.Topic.commit", unknown)
    with pytest.raises(OutcomeUnknownError):
        run(lake, 0, waiting, topic="a")
    assert files(lake, "a") == 1


def test_the_same_txn_or_an_older_one_is_passed_over(lake: Lake) -> None:
    for version, value in ((3, "first"), (3, "again"), (2, "older"), (4, "next")):
        given = {"lake": lake.uri, "topic": "a", "txnAppId": "app", "txnVersion": str(version)}
        commits.commit_batch(lake, [staged(lake, a=value)], parse_batch(given, None))

    assert (committed(lake, "a"), files(lake, "a")) == (["first", "next"], 2)
    assert commits.batch_marker(None) is None
    with pytest.raises(InvalidOptionError, match="begins with 'tidelog/', which is the log's own"):
        commits.batch_marker(WriteId("tidelog/end/0", 1))


# --- the writers, as Spark calls them ----------------------------------------------------------------------


def batch_writer(lake: Lake, **options: str) -> BatchWriter:
    return BatchWriter(SCHEMA, False, parse_batch({"lake": lake.uri, **options}, None))


def stream_writer(lake: Lake, **options: str) -> StreamWriter:
    return StreamWriter(SCHEMA, parse_stream({"lake": lake.uri, **options}, None))


def test_an_abort_after_failed_tasks_deletes_what_the_others_staged(lake: Lake) -> None:
    batch_writer(lake).abort([StagedMessage(staged(lake, a="1")), None])
    stream_writer(lake).abort([None, StagedMessage(staged(lake, b="1"), QUERY)], 0)
    assert (files(lake, "a"), files(lake, "b")) == (0, 0)


def test_an_abort_after_a_commit_that_broke_off_keeps_the_segments(lake: Lake) -> None:
    """Spark aborts when it has no answer from the commit, which may have come through."""
    message = StagedMessage(staged(lake, a="1"), QUERY)
    stream_writer(lake).commit([message], 0)
    stream_writer(lake).abort([message], 0)
    of_batch = StagedMessage(staged(lake, b="2"))
    batch_writer(lake).commit([of_batch])
    batch_writer(lake).abort([of_batch])

    assert (committed(lake, "a"), committed(lake, "b")) == (["1"], ["2"])


def test_an_abort_never_hides_what_went_wrong(lake: Lake, tmp_path: Path) -> None:
    """Spark shows an abort's error instead of the one before it."""
    message = StagedMessage(staged(lake, a="1"), QUERY)
    options = {"lake": str(tmp_path / "gone"), "topic": "t"}
    StreamWriter(SCHEMA, parse_stream(options, None)).abort([message, None], 0)


def test_a_batch_without_tasks_is_nothing_to_commit(lake: Lake) -> None:
    stream_writer(lake).commit([], 3)
    assert lake.topic("a").state().txns == {}


def test_a_streaming_task_that_does_not_know_its_query_is_refused(lake: Lake) -> None:
    with pytest.raises(InvalidOptionError, match="which query it belongs to"):
        stream_writer(lake).write(iter([]))


def test_a_relative_address_is_made_one_that_tasks_elsewhere_understand(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    batch = BatchWriter(SCHEMA, False, parse_batch({"lake": "lake"}, None))
    stream = StreamWriter(SCHEMA, parse_stream({"lake": "lake"}, None))
    assert (batch._options.lake, stream._options.lake) == (lake.uri, lake.uri)

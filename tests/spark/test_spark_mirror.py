"""The first copy of a lake by Spark's tasks: the follower is the source's equal, and a mirror goes on from there."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.jobs import mirror as mirror_job
from tidelog.jobs.on_spark.copying import SparkCopier, shares
from tidelog.log.base.errors import LakeFollowsError, MissingSegmentError
from tidelog.log.lake import Lake
from tidelog.mirror.comparison import differences
from tidelog.mirror.follower_setup import adopt
from tidelog.mirror.mirror import Mirror


def fill(lake: Lake, appends: int) -> None:
    for number in range(appends):
        lake.topic("t").append(pa.table({"key": [f"{number % 7}"], "value": [f"{number}".encode() * 100]}))
    GroupLog(lake).commit_offsets("g", {("t", 0): CommittedOffset(1)})


@pytest.fixture
def source(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path / "source"))
    lake.alter_config({"log.checkpoint.interval": "20"})
    lake.create_topic("t", 2)
    return lake


def test_the_job_makes_a_follower_that_a_mirror_goes_on_with(
    spark: SparkSession, source: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(source, 100)
    copy = str(tmp_path / "copy")
    assert mirror_job.main(["--from", source.uri, "--to", copy, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["problems"] == {}
    assert told["bytes"] > 100 * 100
    with Lake(copy, create=False, may_change_follower=True) as follower:
        assert list(differences(source, follower)) == []
        with pytest.raises(LakeFollowsError):
            Lake(copy).topic("t").append(pa.table({"value": [b"x"]}))
        fill(source, 3)
        mirror = Mirror(source, follower)
        mirror.round()
        mirror.close()
        assert list(differences(source, follower)) == []
    assert mirror_job.main(["--from", source.uri, "--to", copy]) == 0  # again: nothing is left to do
    source.close()


def test_tasks_copy_the_files_and_name_what_is_lost(spark: SparkSession, source: Lake, tmp_path: Path) -> None:
    fill(source, 30)
    with Lake(str(tmp_path / "copy"), may_change_follower=True) as follower:
        adopt(source, follower)
        copier = SparkCopier(spark, source, follower, few_bytes=0)
        paths = [f"t/{s.path}" for s in source.topic("t").state().all_segments()]
        sizes = {path: source.storage.head(path).size for path in paths}
        assert copier.copy({**sizes, "t/gone.parquet": 5}) == ["t/gone.parquet"]
        assert copier.copied_bytes == sum(sizes.values())
        assert all(follower.storage.get(path) == source.storage.get(path) for path in paths)
        with pytest.raises(MissingSegmentError, match="the file is damaged there"):
            copier.copy(sizes | {paths[0]: 7})
        mirror = Mirror(source, follower, copier=copier)
        assert mirror.round().whole
        mirror.close()
        assert list(differences(source, follower)) == []
    source.close()


def test_shares_are_of_about_as_many_bytes() -> None:
    sizes = {f"{number}": number * 10 for number in range(1, 41)}
    found = shares(sizes, 4)
    filled = [sum(one.values()) for one in found]
    assert {path: size for one in found for path, size in one.items()} == sizes
    assert max(filled) - min(filled) <= 10
    assert shares({"a": 1}, 8) == [{"a": 1}]

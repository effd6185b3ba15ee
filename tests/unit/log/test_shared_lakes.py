"""Lakes that Spark's workers keep open: the same one again, until it is another one."""

import gc
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from tidelog.log.base.errors import LakeNotFoundError
from tidelog.log.lake import Lake
from tidelog.log.shared import shared_lake, shared_storage


def test_a_lake_is_opened_once(tmp_path: Path) -> None:
    uri = Lake(str(tmp_path)).uri
    assert shared_lake(uri) is shared_lake(uri)
    assert shared_storage(uri) is shared_storage(uri)


def test_a_changed_configuration_counts_at_once(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    assert shared_lake(lake.uri).config().num_partitions == 1
    lake.alter_config({"num.partitions": "33"})
    assert shared_lake(lake.uri).config().num_partitions == 33


def test_a_lake_made_again_in_the_same_place_is_another(tmp_path: Path) -> None:
    """A notebook deletes its folder and goes on, while Spark's workers live."""
    root = tmp_path / "lake"
    lake = Lake(str(root))
    for _ in range(3):
        lake.topic("t").append(pa.table({"value": ["old"]}))
    shared_lake(lake.uri).topic("t").append(pa.table({"value": ["old"]}))
    shutil.rmtree(root)
    with pytest.raises(LakeNotFoundError, match="There is no lake at"):
        shared_lake(lake.uri)

    again = Lake(str(root))
    shared_lake(lake.uri).topic("t").append(pa.table({"value": ["new"]}))
    assert again.offsets("t") == {0: (0, 1)}


def test_a_place_without_a_lake_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(LakeNotFoundError):
        shared_lake(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_what_a_worker_has_imported_is_no_work_for_its_garbage_collector(tmp_path: Path) -> None:
    """PySpark's daemon collects after each task, and the collector would go over 60,000 objects each time."""
    gc.unfreeze()
    shared_storage(str(tmp_path))
    assert gc.get_freeze_count() > 10_000
    gc.unfreeze()

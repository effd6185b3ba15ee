"""Branches of a lake without faults: made by the clock, judged by another process, all of them in the end."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import chaos_branches
import pytest
from chaos_branches import Branches
from chaos_life import Life
from chaos_plan import INPUT, Pace, Place, Worker
from journals import JournalFile

from tidelog.log.storage import open_storage
from tidelog.operations.branches import branches_of


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path / "run")
    place.make()
    return place


@contextmanager
def producing(place: Place) -> Iterator[None]:
    """Meanwhile a producer appends to a topic, and notes it."""
    journal = JournalFile(place.journals / "producer-1.0000.jsonl")
    ends = threading.Event()

    def produce() -> None:
        with place.seen() as lake:
            topic, number = lake.topic(INPUT), 0
            while not ends.wait(0.01):
                number += 1
                value = f"producer-1.0:{number}"
                journal.note("send", topic=INPUT, values=[value])
                first, _ = topic.append([{"value": value.encode(), "partition": 0}])[0]
                journal.note("acked", topic=INPUT, records=[(0, first, value, None)])

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def await_branches(branches: Branches, count: int) -> None:
    while branches.counts["branches made"] < count and not branches.problems:
        threading.Event().wait(0.02)


def test_all_that_are_made_are_judged_and_discarded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos_branches, "MOST_WAITING", 1)
    with producing(place), Branches(place, 0.01) as branches:
        await_branches(branches, 6)
    counts = branches.counts
    assert branches.problems == []
    assert counts["branches judged"] == counts["branches made"] >= 6
    assert counts["branches that waited for room, as many others waited for the judge"] > 0
    assert counts["branches: records in the last one"] > 0
    assert list((place.folder / "branches").rglob("*.parquet")) == []
    with place.seen() as lake:
        assert branches_of(lake.storage, open_storage) == []


def test_a_record_that_was_lost_long_ago_is_found_in_a_branch(place: Place) -> None:
    with producing(place), Branches(place, 0.05) as branches:
        await_branches(branches, 2)
        with place.seen() as lake:
            lake.delete_records(INPUT, {0: 1})  # an operator's mistake, of which no client knows
        await_branches(branches, 100)
    assert [problem for problem in branches.problems if "producer-1.0:1 at in[0]@0" in problem], branches.problems


def test_the_pace_of_a_run_makes_batches_smaller(tmp_path: Path) -> None:
    place = Place(tmp_path / "run")
    place.make(pace=Pace(pauses=10.0, batches=0.2))
    life = Life(place, Worker("producer-1", "producer", (INPUT,)), 0, Random(1))
    assert (len(life.batch(100)), len(life.batch(1))) == (20, 1)
    assert life.batch(5) == ["producer-1.0:22"]

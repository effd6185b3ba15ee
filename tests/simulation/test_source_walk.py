"""The stream reader through 1,000 random steps for each way to say what a query reads, beside a model of its topics."""

from random import Random

import pytest
from source_walk import ASSIGN, PATTERN, SUBSCRIBE, Strategy, Walk
from support.logs import memory_lake
from support.source_world import World

from tidelog.sources import stream, tasks

STEPS = 1_000


@pytest.mark.parametrize("strategy", [PATTERN, SUBSCRIBE, ASSIGN], ids=["pattern", "subscribe", "assign"])
def test_a_query_delivers_what_its_model_says(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics come and go, partitions are added, records deleted; batches fail; runs end and begin again."""
    lake, storage, clock = memory_lake()
    monkeypatch.setattr(stream, "shared_lake", lambda *_: lake)
    monkeypatch.setattr(tasks, "shared_storage", lambda *_: storage)
    walk = Walk(World(lake), clock, strategy, Random(14))
    try:
        for _ in range(STEPS):
            walk.step()
        walk.finish()
    except Exception:
        print("\n".join(walk.trace))
        raise
    print(walk.counts)
    assert min(walk.counts.values()) >= 5

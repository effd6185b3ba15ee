"""The stream reader through 1,000 random steps for each way to say what a query reads, beside a model of its topics."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from source_walk import ASSIGN, PATTERN, SUBSCRIBE, Walk
from support.logs import memory_lake
from support.source_world import World

from tidelog.sources import stream, tasks
from tidelog.sources.catalog import Catalog

STEPS = 1_000


@pytest.fixture
def walk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Walk]:
    lake, storage, clock = memory_lake()
    monkeypatch.setattr(stream, "shared_lake", lambda *_: lake)
    monkeypatch.setattr(tasks, "shared_storage", lambda *_: storage)
    monkeypatch.setattr(stream.logger, "disabled", True)  # it warns of every loss, and there are hundreds
    with lake:
        yield Walk(World(lake), clock, getattr(request, "param", PATTERN), Random(14))


def go(walk: Walk) -> None:
    for _ in range(STEPS):
        walk.step()
    walk.finish()


@pytest.mark.parametrize("walk", [PATTERN, SUBSCRIBE, ASSIGN], ids=["pattern", "subscribe", "assign"], indirect=True)
def test_a_query_delivers_what_its_model_says(walk: Walk) -> None:
    """Topics come and go, partitions are added, records deleted; batches fail; runs end and begin again."""
    try:
        go(walk)
    except BaseException:
        print("\n".join(walk.trace))
        raise
    assert min(walk.counts.values()) >= 5, walk.counts


def resolves_for_all(*args: Any, of: object = None, **more: Any) -> Any:
    return RESOLVED(*args, **more)


def reports_no_loss(*_: Any, **__: Any) -> list[str]:
    return []


def reads_new_partitions_from_now(start: Any, end: Any, *args: Any, **more: Any) -> Any:
    return PLAN_STREAM({**end, **start} if start else start, end, *args, **more)


def forgets_what_is_gone(start: Any, latest: Any, *args: Any, **more: Any) -> Any:
    admitted = ADMIT(start, latest, *args, **more)
    return replace(admitted, end={**start, **admitted.end})


RESOLVED, PLAN_STREAM, ADMIT = Catalog.resolved, stream.plan_stream, stream.admit
BUGS = {
    "a repeated batch has today's partitions": (Catalog, "resolved", resolves_for_all),
    "losses are not reported": (stream, "judge_losses", reports_no_loss),
    "new partitions are read from now on": (stream, "plan_stream", reads_new_partitions_from_now),
    "deleted partitions stay": (stream, "admit", forgets_what_is_gone),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_walk_finds_planted_bugs(walk: Walk, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    monkeypatch.setattr(*BUGS[bug])
    with pytest.raises(BaseException):  # noqa: B017, PT011 - a check of the walk or an error of the reader
        go(walk)

"""Batches over several topics: all or nothing, and once, wherever a process ends and wherever its rows go then."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from support.crashes import Crash, CrashAt
from support.logs import quiet, values
from support.sink_batches import QUERY, World, run, staged, write

from tidelog.check.lake import check_lake
from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import (
    InvalidOptionError,
    StaleBatchError,
    StorageFullError,
    StorageUnavailableError,
    TopicChangedError,
)
from tidelog.sinks import commits
from tidelog.sinks.options import parse_batch, parse_stream
from tidelog.transactions.transaction_log import TransactionLog
from tidelog.transactions.upkeep import TransactionUpkeep

Route = Callable[[int], dict[str, str]]


# --- crashes -----------------------------------------------------------------------------------------------


def first(number: int) -> dict[str, str]:
    return {"a": f"{number}x", "b": f"{number}y"}


def otherwise(number: int) -> dict[str, str]:
    return {"b": f"{number}x", "c": f"{number}y"}


def judge(world: World, batches: int) -> int:
    """How many batches are there: the first ones, each whole and once, as one of the two routes says."""
    seen = world.all_seen()
    places = {text: topic for topic, texts in seen.items() for text in texts}
    assert sum(map(len, seen.values())) == len(places)
    there = [number for number in range(batches) if f"{number}x" in places]
    assert there == list(range(len(there)))
    for number in there:
        assert (places[f"{number}x"], places[f"{number}y"]) in {("a", "b"), ("b", "c")}
    assert len(places) == 2 * len(there)
    return len(there)


def crash_and_go_on(moment: int, again: Route) -> bool:
    """Two batches with a crash at that moment; another process runs the last one again. Whether it crashed."""
    world = World()
    lake, hook, batch = world.process(), CrashAt(moment), 0
    world.storage.hook = hook
    with suppress(Crash):
        for batch in (0, 1):
            run(lake, batch, **first(batch))
    world.storage.hook = quiet
    if moment % 2:
        world.storage.inner.lose_power()
    if moment % 3 == 0:
        world.maintain()
        assert judge(world, 2) in (batch, batch + 1)
    successor = world.process()
    for number in range(batch, 3):
        run(successor, number, **again(number))
    assert judge(world, 3) == 3
    world.maintain()
    assert world.undone() == 0
    if moment % 20 == 0:
        assert check_lake(world.storage, deep=True).green
    return hook.crashed


@pytest.mark.parametrize("again", [first, otherwise])
def test_a_crash_between_any_two_calls_leaves_a_batch_everywhere_or_nowhere(again: Route) -> None:
    moment = 0
    while crash_and_go_on(moment, again):
        moment += 1
    assert moment > 60


def test_a_batch_that_fails_half_way_is_finished_by_its_repeat_and_by_an_empty_one() -> None:
    for batch, rows in ((0, {"c": "other"}), (1, {})):
        world = World()
        lake = world.process()

        def refuse(method: str, path: str, phase: str) -> None:
            if method == "put_if_absent" and path.startswith("b/_delta_log/") and not path.endswith("00.json"):
                raise StorageFullError("no space")

        lake.create_topic("b", 1)
        world.storage.hook = refuse
        with pytest.raises(StorageFullError):
            run(lake, 0, a="1", b="2")
        world.storage.hook = quiet
        assert world.seen("a", "b") == [["1"], []]

        run(lake, batch, **rows)
        assert world.seen("a", "b") == [["1"], ["2"]]
        assert "c" not in world.all_seen()


def test_lost_answers_change_nothing() -> None:
    """Each put that has no answer is found out."""
    for at in range(12):
        world, left = World(), [at]
        lake = world.process()

        def lose(method: str, path: str, phase: str, left: list[int] = left) -> None:
            if method == "put_if_absent" and phase == "after":
                left[0] -= 1
                if left[0] == -1:
                    raise StorageUnavailableError("no answer")

        world.storage.hook = lose
        for number in range(2):
            run(lake, number, **first(number))
        assert judge(world, 2) == 2


def test_what_is_refused_before_the_intent_leaves_no_files() -> None:
    world = World()
    lake = world.process()
    run(lake, 0, **first(0))
    files = world.files()

    def full(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and path.startswith("__transaction_state/"):
            raise StorageFullError("no space")

    world.storage.hook = full
    with pytest.raises(StorageFullError):
        run(lake, 1, **first(1))
    world.storage.hook = quiet
    assert (world.files(), judge(world, 2)) == (files, 1)
    run(lake, 1, **otherwise(1))
    assert judge(world, 2) == 2


# --- processes ---------------------------------------------------------------------------------------------


def test_any_process_commits_the_next_batch_or_repeats_one() -> None:
    world = World()
    one, other = world.process(), world.process()
    for number, lake in enumerate((one, other, one, one, other)):
        run(lake, number, **first(number))
    files = world.files()
    # `one` first tries and learns only then that it has a successor. What it staged is left to purges.
    for lake, left in ((other, 0), (one, 2)):
        run(lake, 4, **otherwise(4))
        files += left
        with pytest.raises(StaleBatchError, match="already taken batch 4 of this streaming query, and now gets batch"):
            run(lake, 2, **first(2))
    assert judge(world, 5) == 5
    assert world.seen("a") == [[f"{number}x" for number in range(5)]]
    assert world.files() == files


def test_a_process_that_goes_on_needs_one_entry_a_batch_besides_the_topics() -> None:
    world = World()
    lake = world.process()
    for number in range(4):
        run(lake, number, **first(number))
    one = TransactionLog(world.process()).get(f"spark-{QUERY}")
    assert one is not None
    assert (one.epoch, one.number, one.batch) == (0, 4, 3)


def test_a_lake_that_allows_short_transactions_only_takes_batches() -> None:
    world = World()
    world.process().alter_config({"transaction.max.timeout.ms": "1000"})
    run(world.process(), 0, **first(0))
    assert judge(world, 1) == 1


# --- topics that change ------------------------------------------------------------------------------------


def test_a_topic_that_is_deleted_before_the_intent_refuses_the_batch_and_after_it_is_left_out() -> None:
    world = World()
    lake = world.process()
    late = staged(lake, a="1", b="2")
    lake.delete_topic("b")
    files = world.files()
    options = parse_stream({"lake": lake.uri}, None)
    with pytest.raises(TopicChangedError):
        commits.commit_stream(lake, [late], options, QUERY, 0)
    assert (world.all_seen(), world.files()) == ({}, 0)
    assert files == 1

    def delete_b(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and path.startswith("a/_delta_log/"):
            world.storage.hook = quiet
            world.process().delete_topic("b")

    lake.ensure_topic("b")
    world.storage.hook = delete_b
    run(lake, 0, a="1", b="2")
    assert world.all_seen() == {"a": ["1"]}
    assert "b" not in world.process().topics()


def test_log_append_time_never_falls() -> None:
    world = World()
    lake = world.process()
    lake.create_topic("b", 1, {"message.timestamp.type": "LogAppendTime"})
    early_ms = world.clock.now_ms()
    world.clock.pass_s(5)
    lake.topic("b").append(values("0"))
    options = parse_stream({"lake": lake.uri}, None)
    commits.commit_stream(lake, [staged(lake, early_ms, a="1", b="1")], options, QUERY, 0)

    times = [t for batch in lake.topic("b").read(0) for t in batch.column("timestamp").to_pylist()]
    assert world.seen("a", "b") == [["1"], ["0", "1"]]
    assert times == sorted(times)


def test_segments_below_a_purge_floor_are_written_again() -> None:
    world = World()
    lake = world.process()
    late = staged(lake, a="1", b="1")
    lake.topic("a").append(values("0"))
    purger = world.process()
    upkeep = TransactionUpkeep(purger, LoggedOffsets(GroupLog(purger)))
    upkeep.needed_files("a", purger.topic("a").state().version)

    commits.commit_stream(lake, [late], parse_stream({"lake": lake.uri}, None), QUERY, 0)
    assert world.seen("a", "b") == [["0", "1"], ["1"]]


# --- batch writes ------------------------------------------------------------------------------------------


def test_a_batch_write_is_in_all_its_topics_or_in_none() -> None:
    moment, crashed = 0, True
    while crashed:
        world = World()
        lake, hook = world.process(), CrashAt(moment)
        world.storage.hook = hook
        with suppress(Crash):
            write(lake, a="1", b="1")
        crashed, moment = hook.crashed, moment + 1
        world.storage.hook = quiet
        world.maintain()
        assert world.all_seen() in ({}, {"a": ["1"], "b": ["1"]})
    assert world.all_seen()
    assert moment > 20


def test_writes_without_a_number_share_an_id_and_one_topic_needs_none() -> None:
    world = World()
    lake = world.process()
    write(lake, a="0")
    assert "__transaction_state" not in world.storage.list_folders("")
    for text in "123":
        write(lake, a=text, b=text)
    assert world.seen("a", "b") == [["0", "1", "2", "3"], ["1", "2", "3"]]
    assert len(TransactionLog(lake).all()) == 1


def test_an_applications_version_is_written_once_to_the_lake_whatever_its_topics() -> None:
    world = World()
    for version, rows in (
        (7, {"a": "first", "b": "first"}),
        (7, {"b": "repeated", "c": "repeated"}),
        (6, {"a": "older", "b": "older"}),
        (8, {"a": "newer"}),
    ):
        write(world.process(), "nightly", version, **rows)
    write(world.process(), "weekly", 1, a="another's", b="another's")

    assert world.all_seen() == {"a": ["first", "newer", "another's"], "b": ["first", "another's"]}
    assert world.files() == 5


def test_a_write_to_several_topics_has_no_entry_to_name() -> None:
    with pytest.raises(InvalidOptionError, match="'requestId' is the id of one log entry"):
        parse_batch({"lake": "l", "requestId": "R-1"}, None)

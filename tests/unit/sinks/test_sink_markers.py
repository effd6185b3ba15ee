"""A query that changes from option `topic` to a column, and back: each batch counts once all the same."""

from contextlib import suppress

import pytest
from support.crashes import Crash, CrashAt
from support.logs import quiet
from support.sink_batches import QUERY, World, run, staged

from tidelog.log.base.errors import StaleBatchError
from tidelog.sinks import commits
from tidelog.sinks.markers import MOVED
from tidelog.sinks.options import parse_stream

MARKER = f"tidelog/sink/{QUERY}"

# What a query does, one after another: batch, its option `topic` (None: by column), its rows; and whether they count.
Step = tuple[int, str | None, dict[str, str], bool]
MOVES: dict[str, list[Step]] = {
    "a batch that went to the option's topic is not run again by column": [
        (0, "a", {"a": "0"}, True),
        (1, "a", {"a": "1"}, True),
        (1, None, {"b": "1 again", "c": "1 again"}, False),
        (2, None, {"a": "2", "b": "2"}, True),
    ],
    "the first batch of all": [(0, "a", {"a": "0"}, True), (0, None, {"b": "0 again"}, False)],
    "and back": [
        (0, None, {"a": "0", "b": "0"}, True),
        (0, "a", {"a": "0 again"}, False),
        (1, "a", {"a": "1"}, True),
        (1, None, {"b": "1 again"}, False),
        (2, None, {"b": "2"}, True),
    ],
    "there and back, to another topic too": [
        (0, "a", {"a": "0"}, True),
        (1, None, {"a": "1", "b": "1"}, True),
        (1, "a", {"a": "1 again"}, False),
        (2, "a", {"a": "2"}, True),
        (2, "c", {"c": "2 again"}, False),
        (3, "c", {"c": "3"}, True),
        (3, None, {"b": "3 again"}, False),
        (4, None, {"b": "4"}, True),
        (4, "b", {"b": "4 again"}, False),
    ],
    "from two topics": [
        (0, "a", {"a": "0"}, True),
        (1, "b", {"b": "1"}, True),
        (1, None, {"a": "1 again"}, False),
        (2, None, {"a": "2"}, True),
        (2, "b", {"b": "2 again"}, False),
        (3, "b", {"b": "3"}, True),
    ],
}


def expected(steps: list[Step]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for _, _, rows, counts in steps:
        for topic, text in rows.items() if counts else ():
            found.setdefault(topic, []).append(text)
    return found


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize("move", list(MOVES))
def test_a_query_counts_its_batches_once_however_it_is_started_again(move: str, restarted: bool) -> None:
    world = World()
    lake = world.process()
    for batch, option, rows, _ in MOVES[move]:
        lake = world.process() if restarted else lake
        run(lake, batch, option, **rows)
    assert world.all_seen() == expected(MOVES[move])
    assert world.files() == sum(map(len, expected(MOVES[move]).values()))


@pytest.mark.parametrize("option", [None, "a", "c"])
def test_a_crash_in_the_midst_of_the_move(option: str | None) -> None:
    """The batch is run again in the new way, or in the old one after all."""
    moment, crashed = 0, True
    while crashed:
        world = World()
        before = world.process()
        before.create_topic("b", 1)
        run(before, 0, "a", a="0")
        run(before, 1, "b", b="1")
        lake, hook = world.process(), CrashAt(moment)
        world.storage.hook = hook
        with suppress(Crash):
            run(lake, 2, a="2", b="2")
        crashed, moment = hook.crashed, moment + 1
        world.storage.hook = quiet

        rows = {"c": "2"} if option is None else {option: "2"}
        run(world.process(), 2, option, **rows)
        run(world.process(), 3, c="3")
        seen = world.all_seen()
        there = {topic for topic, texts in seen.items() if "2" in texts}
        assert there in ({"a", "b"}, set(rows))
        assert sorted(text for texts in seen.values() for text in texts) == sorted("013" + "2" * len(there))
    assert moment > 20


def test_a_restored_checkpoint_is_refused_over_the_move_too() -> None:
    world = World()
    run(world.process(), 5, "a", a="5")
    files = world.files()
    with pytest.raises(StaleBatchError, match=r"already taken batch 5 .* now gets batch 4"):
        run(world.process(), 4, a="4", b="4")
    run(world.process(), 6, b="6")
    with pytest.raises(StaleBatchError, match=r"already taken batch 6 .* now gets batch 5"):
        run(world.process(), 5, "a", a="5 again")
    assert world.all_seen() == {"a": ["5"], "b": ["6"]}
    assert (world.process().topic("a").state().txn(MARKER), world.files()) == (MOVED, files + 1)


def test_a_driver_taken_for_dead_is_refused_once_its_query_has_moved() -> None:
    """And when it comes first, its batch is the one that counts."""
    world = World()
    dead = world.process()
    run(dead, 0, "a", a="0")
    late = staged(dead, a="late")

    def come_first(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and path.startswith("a/_delta_log/"):
            world.storage.hook = quiet
            commits.commit_stream(dead, [late], parse_stream({"lake": dead.uri, "topic": "a"}, None), QUERY, 1)

    moving = world.process()
    world.storage.hook = come_first
    for _ in range(2):  # it may have to be run again
        run(moving, 1, a="1", b="1")
        assert world.all_seen() == {"a": ["0", "late"]}
    run(moving, 2, b="2")

    with pytest.raises(StaleBatchError):
        run(dead, 1, "a", a="later still")
    assert world.all_seen() == {"a": ["0", "late"], "b": ["2"]}


def test_a_topic_that_cant_be_opened_stops_no_query() -> None:
    world = World()
    world.process().create_topic("broken", 1)
    world.storage.inner.put("broken/_delta_log/00000000000000000001.json", b'{"protocol":{"minReaderVersion":9')
    run(world.process(), 0, a="1", b="1")
    assert world.seen("a", "b") == [["1"], ["1"]]

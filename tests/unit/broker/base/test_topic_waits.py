"""Which requests a change of a topic wakes, by partitions."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidelog.broker.base.topic_waits import TopicWaits


def state(ends: dict[int, int], starts: dict[int, int] | None = None, topic_id: str = "a") -> Any:
    return SimpleNamespace(topic_id=topic_id, ends=ends, starts=starts or {})


class Waiting:
    """Requests by name, and which of them were woken."""

    def __init__(self) -> None:
        self.waits = TopicWaits()
        self.woken: list[str] = []
        self.wakes: dict[str, Any] = {}

    def add(self, name: str, partitions: Any, known: Any) -> None:
        self.wakes[name] = lambda: self.woken.append(name)
        self.waits.add(self.wakes[name], partitions, known)

    def forget(self, name: str) -> None:
        self.waits.forget(self.wakes.pop(name))

    def taken(self) -> list[str]:
        woken, self.woken = self.woken, []
        return woken


def test_a_commit_wakes_what_waits_for_its_partitions():
    found = Waiting()
    known = state({0: 5})
    for name, partitions in {"a": [0, 1], "b": [1, 1], "c": [2], "all": None}.items():
        found.add(name, partitions, known)
    found.waits.ring([1, 7])
    assert found.taken() == ["all", "a", "b"]
    found.waits.ring()
    assert found.taken() == ["a", "b", "c", "all"]
    for name in ("b", "all"):
        found.forget(name)
    found.waits.ring({0, 1, 2})
    assert found.taken() == ["a", "c"]
    assert len(found.waits) == 2


def test_a_look_wakes_what_waits_for_what_it_shows():
    found = Waiting()
    live = state({0: 5, 1: 5}, {1: 2})
    for partition in (0, 1, 2):
        found.add(str(partition), [partition], live)
    found.waits.look(live)
    assert found.taken() == []
    live.ends[0] = 6  # the state of a topic moves on in its place
    found.waits.look(live)
    assert found.taken() == ["0"]
    live.starts[1] = 3
    live.ends[2] = 1
    found.waits.look(live)
    assert found.taken() == ["1", "2"]
    found.waits.look(None)  # it can't be had for now
    assert found.taken() == ["0", "1", "2"]
    found.waits.look(live)
    assert found.taken() == ["0", "1", "2"]
    found.waits.look(state(dict(live.ends), dict(live.starts), topic_id="b"))
    assert found.taken() == ["0", "1", "2"]


def test_what_changed_before_a_request_came_wakes_those_that_waited_already():
    found = Waiting()
    live = state({0: 5})
    found.add("first", [0], live)
    live.ends[0] = 6
    found.add("second", [0], live)
    found.waits.look(live)
    assert "first" in found.taken()


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 9), st.none() | st.lists(st.integers(0, 3), max_size=4)),
            st.tuples(st.just("forget"), st.integers(0, 9), st.just([])),
            st.tuples(st.just("grow"), st.integers(0, 3), st.just([])),
            st.tuples(st.just("raise"), st.integers(0, 3), st.just([])),
            st.tuples(st.just("create again"), st.just(0), st.just([])),
            st.tuples(st.just("look"), st.just(0), st.just([])),
        ),
        max_size=40,
    )
)
def test_none_misses_a_change(steps):
    """Whatever comes, goes and changes in whichever order: the next look wakes each that has not seen a change."""
    found, live = Waiting(), state({})
    seen: dict[str, Any] = {}  # what each had seen when it began to wait, or was woken, and of which partitions

    def at(partitions: Any) -> Any:
        return live.topic_id, [
            (live.starts.get(p), live.ends.get(p)) for p in (range(4) if partitions is None else partitions)
        ]

    for step, number, partitions in steps:
        name = str(number)
        if step == "add" and name not in seen:
            found.add(name, partitions, live)
            seen[name] = partitions, at(partitions)
        elif step == "forget" and name in seen:
            found.forget(name)
            del seen[name]
        elif step == "grow":
            live.ends[number] = live.ends.get(number, 0) + 1
        elif step == "raise":
            live.starts[number] = live.starts.get(number, 0) + 1
        elif step == "create again":
            live = state({}, topic_id=live.topic_id + "a")
        elif step == "look":
            found.waits.look(live)
            for woken in found.taken():
                seen[woken] = seen[woken][0], at(seen[woken][0])
            assert seen == {name: (of, at(of)) for name, (of, _) in seen.items()}
    for name in list(seen):
        found.forget(name)
    assert not found.waits._of
    assert not found.waits._of_all

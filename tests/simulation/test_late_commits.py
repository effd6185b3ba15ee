"""When the checker of brokers takes a commit that takes a newer one back: only where Kafka would take it, too."""

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from brokers_sim_journal import GROUP, BrokersJournal, SentCommit
from groups_sim_history import ENTRIES
from sim_scheduler import Process

PLACE = ("once", 1)
OLDER = SentCommit("b1@0.2", "c1", 3, {PLACE: 7}, sent_s=5.8, arrives_s=11.3)
NEWER = SentCommit("b1@0.2", "c1", 3, {PLACE: 26}, sent_s=7.1, arrives_s=7.2)


@dataclass
class Actor:
    process: Process
    name: str = "worker"


@dataclass
class Stage:
    """Stands for a scheduler: what time it is, and which process acts."""

    now: float
    current: Actor


def journal(*sent: SentCommit, members: tuple[str, ...] = ("c1",), serving: frozenset[int] = frozenset({1})) -> Any:
    """What was sent to the brokers of a group in its third generation."""
    stage = Stage(0.0, Actor(Process("b1@0.2")))
    made = BrokersJournal(stage, 2)  # type: ignore[arg-type]
    made.group = {"generation": 3, "members": [{"member_id": name} for name in members]}
    made.serving = serving
    made.processed[PLACE] = dict.fromkeys(range(30), "")
    for one in sent:
        stage.now = one.sent_s
        made.commits(one.broker, one.member_id, one.generation, one.offsets, one.arrives_s)
    return made


def taken(made: BrokersJournal, *offsets: int) -> list[str]:
    """What is wrong when the broker's log takes these commits."""
    for offset in offsets:
        row = {
            "kind": "offset",
            "group": GROUP,
            "topic": PLACE[0],
            "partition": PLACE[1],
            "offset": offset,
            "generation": 3,
        }
        entry = json.dumps({"commitInfo": {"tidelog": {"rows": [row]}}})
        made.stored("put_if_absent", f"{ENTRIES}1.json", entry.encode())
    return made.violations


def test_a_request_that_came_after_the_newer_one_may_take_it_back() -> None:
    made = journal(OLDER, NEWER)
    assert not taken(made, 26, 7)
    assert made.committed[PLACE] == 7


@pytest.mark.parametrize(
    "older",
    [
        pytest.param(replace(OLDER, arrives_s=6.0), id="the broker had it before the newer one was sent"),
        pytest.param(replace(OLDER, sent_s=7.15), id="its client went back by itself"),
        pytest.param(replace(OLDER, broker="b2@0.3"), id="it came to another broker"),
        pytest.param(replace(OLDER, broker="b1@0.1"), id="it came to a process before this one"),
        pytest.param(replace(OLDER, member_id="c2"), id="it is another member's"),
        pytest.param(replace(OLDER, generation=2), id="it is of another generation"),
        pytest.param(replace(OLDER, offsets={PLACE: 8}), id="it is another offset"),
        pytest.param(replace(OLDER, offsets={("once", 0): 7}), id="it is of another partition"),
    ],
)
def test_others_may_not(older: SentCommit) -> None:
    sent = sorted((older, NEWER), key=lambda one: one.sent_s)
    (wrong,) = taken(journal(*sent), 26, 7)
    assert "the offset of ('once', 1) went back from 26 to 7" in wrong


def test_a_former_members_request_may_not() -> None:
    assert "went back" in taken(journal(OLDER, NEWER, members=("c2",)), 26, 7)[0]


def test_no_request_may_by_a_broker_that_does_not_serve() -> None:
    assert "went back" in taken(journal(OLDER, NEWER, serving=frozenset({2})), 26, 7)[0]

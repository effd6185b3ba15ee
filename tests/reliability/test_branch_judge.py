"""Branches judged one after another: what a look at increments finds is what a look at everything finds."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from branch_journals import BranchJournals
from branch_judge import BranchJudge, Rows
from checkers import Kind, check
from histories import GROUP, IN, NEW, ODD, OLD, PLANTED, A, B, Plant, produced, right, transaction
from history import History, Partition, Sent
from journals import JournalTail


def of_a_branch(history: History) -> History:
    """What is known of a branch."""
    by_query = [replace(copy, goes_on=copy.group is None) for copy in history.copies]
    return replace(history, stretches=[], unassigned=[], looks=[], copies=by_query)


def rows(part: Partition) -> Rows:
    offsets, keys, values = ([record[n] for record in part.records] for n in range(3))
    encoded = [None if key is None else key.encode() for key in keys]
    columns = {
        "offset": pa.array(offsets, pa.int64()),
        "key": pa.array(encoded, pa.binary()),
        "value": pa.array([value.encode() for value in values], pa.binary()),
    }
    return Rows(part.start, part.end, pa.table(columns))


def judged(judge: BranchJudge, history: History) -> list[str]:
    """A branch with the whole log of a history, whose lake had it before the branch was begun."""
    log = {place: rows(part) for place, part in history.log.items()}
    return judge.judge(log, history.committed, {place: (part.start, part.end) for place, part in history.log.items()})


def kinds(problems: list[str]) -> set[Kind]:
    """What is found; UNREAD needs readers."""
    return {kind for kind in Kind if any(problem.startswith(f"{kind.value}: ") for problem in problems)}


def beginning(history: History, share: float) -> History:
    """A log that is shorter, of which no client has said anything yet."""
    began = deepcopy(history)
    for place, part in began.log.items():
        if history.rule(place[0]).policy == "keep":
            part.end = int(part.end * share)
            part.records = [record for record in part.records if record[0] < part.end]
        else:
            began.log[place] = Partition(part.start, part.start, [])
    return replace(began, acked=[], transactions={}, committed={})


def planted(plant: Plant) -> History:
    """A history in which a plant has grown."""
    history = right()
    plant(history)
    return of_a_branch(history)


def of_the_log(history: History) -> set[Kind]:
    """What a look at everything finds; what a group has read is not known of a branch."""
    return {fault.kind for fault in check(history)} - {Kind.UNREAD}


OF_THE_LOG = [plant for _, _, plant in PLANTED if of_the_log(planted(plant))]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("plant", OF_THE_LOG)
def test_what_a_look_at_everything_finds_is_found(plant: Plant, share: float) -> None:
    history = planted(plant)
    judge = BranchJudge(grows := replace(history, acked=[], transactions={}), watched=[GROUP])
    judged(judge, beginning(of_a_branch(right()), share))
    grows.acked += history.acked
    grows.transactions |= history.transactions
    assert kinds(judged(judge, history)) == of_the_log(history)


def test_kinds_that_a_branch_can_have_are_planted() -> None:
    of_readers = {Kind.SKIPPED, Kind.WENT_BACK, Kind.CHANGED, Kind.UNASSIGNED, Kind.UNREAD}
    of_observers = {Kind.START_FELL, Kind.END_FELL, Kind.COMMIT_FELL}
    assert set().union(*(of_the_log(planted(plant)) for plant in OF_THE_LOG)) == set(Kind) - of_readers - of_observers


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_nothing_is_found_where_all_holds(share: float) -> None:
    history = of_a_branch(right())
    judge = BranchJudge(grows := replace(history, acked=[], transactions={}), watched=[GROUP])
    first = judged(judge, beginning(history, share))
    grows.acked += history.acked
    grows.transactions |= history.transactions
    assert [kind for kind in kinds(first) if kind is not Kind.COPIED_AHEAD] == []
    assert judged(judge, history) == []
    assert judged(judge, history) == []
    assert judge.checked_whole == 0


# --- what was seen long ago --------------------------------------------------------------------------------


Change = Callable[[History], None]


def lose(history: History) -> None:
    history.log[IN].records.pop(0)


def lose_and_close_the_gap(history: History) -> None:
    history.log[IN].records = [(o, k, v) for (o, k, _), (_, _, v) in pairwise(history.log[IN].records)]


def double(history: History) -> None:
    history.log[IN].records.insert(1, history.log[IN].records[0])


def write_again(history: History) -> None:
    history.log[IN].records.append((history.log[IN].end, None, "p:1"))
    history.log[IN].end += 1


def change(history: History) -> None:
    history.log[IN].records[1] = (1, None, "p:1")


def change_a_key(history: History) -> None:
    history.log[IN].records[1] = (1, "key", "p:2")


def tear(history: History) -> None:
    history.log[B].records.pop(0)


def take_a_whole_topic(history: History) -> None:
    history.log.pop(IN)


def forget_an_end(history: History) -> None:
    history.log[IN] = Partition(0, 3, history.log[IN].records[:3])


def expire_in_the_middle(history: History) -> None:
    history.log[OLD] = Partition(2, 3, [])


def expire_less(history: History) -> None:
    history.log[OLD] = Partition(1, 3, [(1, None, "o:2"), (2, None, "o:3")])


def compact_the_newest(history: History) -> None:
    history.log[NEW].records = []


def bring_back(history: History) -> None:
    history.log[NEW].records.insert(0, (1, "k", "n:2"))


def commit_less(history: History) -> None:
    history.committed[GROUP, IN] = 1


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        (lose, f"{Kind.LOST}: p:1 at in[0]@0"),
        (lose_and_close_the_gap, f"{Kind.MOVED}: p:1 at in[0]@0"),
        (double, f"{Kind.DISORDER}: in[0]@0 follows 0"),
        (write_again, f"{Kind.DUPLICATED}: p:1 at in[0]@4"),
        (change, f"{Kind.MOVED}: p:2 at in[0]@1"),
        (change_a_key, "in[0] had p:2 at 1 in the branch before, and has p:2 at 1 of key"),
        (tear, f"{Kind.TORN}: t#1: 2 of 3"),
        (take_a_whole_topic, "in[0] ends at 0, and had 4 before it began"),
        (forget_an_end, f"{Kind.LOST}: p:4 at in[0]@3"),
        (expire_in_the_middle, f"{Kind.LOST}: o:3 at old[0]@2"),
        (expire_less, "old[0] begins at 1, and began at 2"),
        (compact_the_newest, f"{Kind.LOST}: n:3 at new[0]@2"),
        (bring_back, "new[0] had n:3 at 2 of k in the branch before, and has n:2 at 1 of k"),
        (commit_less, f"{Kind.COMMIT_FELL}: "),
    ],
)
def test_what_becomes_of_what_was_seen_long_ago_is_found(breaks: Change, says: str) -> None:
    history = of_a_branch(right())
    judge = BranchJudge(history, watched=[GROUP])
    bounds = {place: (part.start, part.end) for place, part in history.log.items()}
    for _ in range(3):
        assert judged(judge, history) == []
    broken = deepcopy(history)
    breaks(broken)
    problems = judge.judge({place: rows(part) for place, part in broken.log.items()}, broken.committed, bounds)
    assert [problem for problem in problems if problem.startswith(says)], problems


def test_what_lies_past_its_lakes_end_may_be_elsewhere_in_the_next() -> None:
    history = of_a_branch(right())
    judge = BranchJudge(history, watched=["r"])
    before = {place: (part.start, part.end) for place, part in history.log.items()}
    transaction(history, "t#5", "", {A: ["t:8"]})
    history.committed["r", A] = 4
    assert judge.judge({place: rows(part) for place, part in history.log.items()}, history.committed, before) == []
    (other := history.log[A]).records.pop()
    other.records += [(3, None, "t:9"), (4, None, "t:8")]
    other.end = 5
    history.sent["t:9"] = Sent("a", "t2", 1)
    assert judged(judge, history) == []
    assert judge.checked_whole == 0


def test_a_copy_may_be_seen_before_its_source() -> None:
    history = of_a_branch(right())
    judge = BranchJudge(history)
    seen = {place: (part.start, part.end) for place, part in history.log.items()} | {A: (0, 1)}
    log = {place: rows(part) for place, part in history.log.items()}
    assert judge.judge(log, history.committed, seen) == []
    transaction(history, "t#5", "committed", {A: ["t:8"]})
    (odd := history.log[ODD]).records.append((1, None, "<a/0/3"))
    odd.end = 2
    assert judged(judge, history) == []


def test_an_expired_and_a_compacted_record_may_be_gone() -> None:
    history = of_a_branch(right())
    judge = BranchJudge(history)
    assert judged(judge, history) == []
    produced(history, OLD, 3, "o:4")
    history.log[OLD] = Partition(3, 4, [(3, None, "o:4")])
    produced(history, NEW, 3, "n:4", key="k")
    history.log[NEW].records = [(3, "k", "n:4")]
    assert judged(judge, history) == []
    assert judge.checked_whole == 0


# --- journals ----------------------------------------------------------------------------------------------


def test_each_line_of_a_journal_is_taken_once_and_none_before_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "w.0000.jsonl"
    tail = JournalTail(path, ["send", "committed"])
    lines = [b'{"e":"send","s":1.0}\n', b'{"e":"read","s":2.0}\n', b'{"e":"committed","s":3.0}\n', b'{"e":"committing"']
    path.write_bytes(lines[0] + lines[1] + lines[2][:9])
    assert [event["s"] for event in tail.take(9.0)] == [1.0]
    assert list(tail.take(9.0)) == []
    path.write_bytes(b"".join(lines))
    assert list(tail.take(2.5)) == []
    assert [event["s"] for event in tail.take(3.0)] == [3.0]
    assert list(tail.take(9.0)) == []


def test_a_branch_has_answers_from_before_it_began_and_requests_from_before_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "w.0000.jsonl"
    times = {"begin": 1, "send": 2, "acked": 3, "committing": 5, "committed": 6}
    more = {"send": {"topic": "t", "values": ["w:1"]}, "acked": {"topic": "t", "records": [(0, 7, "w:1", None)]}}
    events = [{"e": kind, "s": at, "txn": "w#1", **more.get(kind, {})} for kind, at in times.items()]
    path.write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events))
    journals = BranchJournals(history := History())

    def known(began_s: float, made_s: float) -> tuple[int, int, bool, str]:
        journals.take([("w.0", path)], began_s, made_s)
        one = history.transactions["w#1"]
        return len(history.sent), len(history.acked), one.asked_to_commit, one.told

    assert known(1.5, 1.6) == (0, 0, False, "")
    assert known(2.5, 5.5) == (1, 0, True, "")
    assert known(5.8, 7.0) == (1, 1, True, "")
    assert known(8.0, 8.0) == (1, 1, True, "committed")

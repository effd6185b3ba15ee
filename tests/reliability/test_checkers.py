"""The checkers find a fault of each kind that is planted in a history, and nothing in one that is right."""

from copy import deepcopy
from dataclasses import replace

import pytest
from checkers import Kind, check, summary
from histories import EVEN, IN, ODD, PLANTED, Plant, right
from history import source_of


@pytest.mark.parametrize(("kind", "where", "plant"), [pytest.param(*p, id=p[2].__name__) for p in PLANTED])
def test_a_planted_fault_is_found(kind: Kind, where: str, plant: Plant) -> None:
    history = right()
    plant(history)
    found = [fault for fault in check(history) if fault.kind is kind]
    assert [fault for fault in found if where in fault.where], check(history)


def test_a_history_that_is_right_has_no_faults() -> None:
    assert check(right()) == []


def test_every_kind_of_fault_is_planted() -> None:
    assert {kind for kind, _, _ in PLANTED} == set(Kind)


def test_what_is_wrong_is_said_in_few_lines() -> None:
    history = right()
    history.log[IN].records.clear()
    lines = summary(check(history) * 4)
    assert len([line for line in lines if line.startswith(Kind.LOST.value)]) == 6
    assert lines[5] == f"{Kind.LOST.value}: 11 more"


def test_checking_changes_nothing() -> None:
    history = right()
    before = deepcopy(history)
    check(history)
    assert history == before


def test_the_source_of_a_copy_is_read_off_its_value() -> None:
    assert source_of("c.0:7<in/2/31") == (("in", 2), 31)
    assert source_of("c.0:7") is None


def copied(third: bool, second: bool) -> list[Kind]:
    """What is found of a copy that goes on of three records, of which the first was copied."""
    history = right()
    history.copies = [replace(history.copies[1], goes_on=True)]
    for place, there in ((EVEN, third), (ODD, second)):
        if not there:
            history.log[place].records.pop()
            history.log[place].end -= 1
    return [fault.kind for fault in check(history)]


def test_of_what_copies_and_goes_on_each_partition_has_a_beginning() -> None:
    assert copied(third=True, second=True) == []
    assert copied(third=False, second=True) == []
    assert copied(third=False, second=False) == []
    assert copied(third=True, second=False) == [Kind.NOT_COPIED]

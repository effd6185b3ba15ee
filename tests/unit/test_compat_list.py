"""The list of `make compat`: what a run finds worse than the list, and the list after a run."""

from compat.listing import NOT_APPLICABLE, Listed, merged, read, worse
from compat.suite import FAILED, PASSED, SKIPPED, Outcome

LISTED = {
    ("s", "good"): Listed(PASSED, ""),
    ("s", "bad"): Listed(FAILED, "a reason"),
    ("s", "other"): Listed(NOT_APPLICABLE, "another"),
}


def ended(test: str, state: str) -> Outcome:
    return Outcome("s", test, state, 1.0, "its  own\twords")


def test_only_what_passes_by_the_list_or_is_not_in_it_can_be_worse() -> None:
    assert worse(LISTED, [ended("good", PASSED), ended("bad", FAILED), ended("other", SKIPPED)]) == []
    assert worse(LISTED, [ended("new", PASSED), ended("bad", PASSED)]) == []
    found = worse(LISTED, [ended("good", FAILED), ended("good", SKIPPED), ended("new", FAILED)])
    assert [line.split()[1] for line in found] == ["good", "good", "new"]


def test_a_run_keeps_reasons_and_adds_what_is_new() -> None:
    run = [ended("good", FAILED), ended("bad", FAILED), ended("other", PASSED), ended("new", SKIPPED)]
    assert merged(LISTED, run) == {
        ("s", "good"): Listed(FAILED, "its own words"),
        ("s", "bad"): Listed(FAILED, "a reason"),
        ("s", "other"): Listed(PASSED, ""),
        ("s", "new"): Listed(NOT_APPLICABLE, "its own words"),
    }


def test_the_list_gives_a_reason_for_all_that_does_not_pass() -> None:
    listed = read()
    assert {one.state for one in listed.values()} == {PASSED, FAILED, NOT_APPLICABLE}
    assert [place for place, one in listed.items() if (one.state == PASSED) == bool(one.reason)] == []

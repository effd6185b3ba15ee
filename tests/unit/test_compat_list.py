"""The list of `make compat`: what a run finds worse than the list, and the list after a run; reports of pytest."""

from pathlib import Path

from compat.listing import NOT_APPLICABLE, Listed, merged, read, worse
from compat.pytest_suite import PytestSuite
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


REPORT = """<testsuites><testsuite>
<testcase classname="tests.integration.test_a" name="test_good" time="1.5"/>
<testcase classname="tests.integration.test_a" name="test_bad" time="0">
<failure message="not&#10; so">more</failure></testcase>
<testcase classname="tests.integration.test_b" name="test_unset" time="0"><error message="no broker"/></testcase>
<testcase classname="tests.integration.test_b" name="test_other" time="0"><skipped message="too old"/></testcase>
</testsuite></testsuites>"""


def test_a_report_of_pytest_tells_how_each_test_ended(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT, encoding="utf-8")
    assert list(PytestSuite("s", (), ("tests",)).read(report, "consumer")) == [
        Outcome("s", "test_a test_good, group.protocol=consumer", PASSED, 1.5),
        Outcome("s", "test_a test_bad, group.protocol=consumer", FAILED, 0.0, "not so"),
        Outcome("s", "test_b test_unset, group.protocol=consumer", FAILED, 0.0, "no broker"),
        Outcome("s", "test_b test_other, group.protocol=consumer", SKIPPED, 0.0, "too old"),
    ]

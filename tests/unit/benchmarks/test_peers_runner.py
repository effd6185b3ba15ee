"""Side by side: a case that fails stops no other, and the time is limited."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from measures import Measure
from runner import CASE_S, CaseError, Outcome, run_all


def measure(case: str) -> Measure:
    return Measure(case, "tidelog", "throughput", "records/s", "higher", [1.0])


def clock(seconds: Iterator[float]) -> Callable[[], float]:
    return lambda: next(seconds)


def test_a_case_that_fails_is_told_of_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    def run(case: str, _: float) -> list[Measure]:
        if case == "two":
            raise CaseError("the lake is dry")
        return [measure(case)]

    outcome = run_all(["one", "two", "three"], run, 60)
    assert [one.case for one in outcome.measures] == ["one", "three"]
    assert outcome.failed == ["two"]
    assert list(outcome.seconds) == ["one", "two", "three"]
    assert capsys.readouterr().err == "the lake is dry\ntwo failed\n"


def test_what_is_wrong_with_the_runner_itself_is_not_taken_for_a_failed_case() -> None:
    def run(case: str, _: float) -> list[Measure]:
        raise KeyError(case)

    with pytest.raises(KeyError):
        run_all(["one"], run, 60)


@pytest.mark.parametrize(
    ("limit_s", "given", "failed"),
    [
        (10_000.0, [CASE_S, CASE_S, CASE_S], []),
        (250.0, [250.0, 150.0, 50.0], []),
        (150.0, [150.0, 50.0], ["three"]),
    ],
)
def test_a_case_gets_what_is_left_of_the_time(
    limit_s: float, given: list[float], failed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The clock is looked at once at first, then twice a case, each of which takes a hundred seconds."""
    seen: list[float] = []

    def run(case: str, left_s: float) -> list[Measure]:
        seen.append(left_s)
        return [measure(case)]

    times = clock(100.0 * (look // 2) for look in count())
    outcome = run_all(["one", "two", "three"], run, limit_s, times)
    assert seen == given
    assert outcome.failed == failed
    assert ("--minutes" in capsys.readouterr().err) == bool(failed)


@pytest.mark.parametrize(
    ("failed", "met", "code"), [([], [True, True], 0), ([], [True, False], 1), (["one"], [True], 2), ([], [], 0)]
)
def test_exit_codes(failed: list[str], met: list[bool], code: int) -> None:
    assert Outcome(failed=failed).exit_code([{"ok": one} for one in met]) == code

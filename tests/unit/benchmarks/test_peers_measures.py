"""Side by side: how the figures of two systems are held against each other."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from demands import CASES, DEMANDS
from measures import Demand, Measure, judge, ratio

PEERS = Path(__file__).parents[3] / "benchmarks" / "peers"


def measure(system: str, *rounds: float, case: str = "write", **more: Any) -> Measure:
    return Measure(case, system, "throughput", "records/s", "higher", list(rounds), **more)


def demand(case: str = "write", **bound: float) -> Demand:
    return Demand(case, "throughput", "tidelog", "kafka", "fast", **bound)


@pytest.mark.parametrize(
    ("own", "baseline", "expected"),
    [
        ((4.0,), (2.0,), 2.0),
        ((10.0, 40.0, 90.0), (10.0, 20.0, 30.0), 2.0),  # a slow round is slow for both
        ((1.0, 30.0, 2.0), (10.0, 10.0, 10.0), 0.2),
        ((1.0, 2.0), (1.0,), None),
        ((1.0, 2.0), (1.0, 0.0), None),
    ],
)
def test_the_ratio_is_the_median_over_the_rounds(own: Any, baseline: Any, expected: float | None) -> None:
    assert ratio(measure("tidelog", *own), measure("kafka", *baseline)) == expected


@pytest.mark.parametrize(
    ("bound", "reached", "ok"),
    [
        ({"at_least": 2.0}, 2.0, True),
        ({"at_least": 2.0}, 1.99, False),
        ({"at_most": 0.8}, 0.8, True),
        ({"at_most": 0.8}, 0.81, False),
        ({"at_most": 0.0}, 0.0, True),
    ],
)
def test_a_demand_is_met_up_to_its_bound(bound: dict[str, float], reached: float, ok: bool) -> None:
    measures = [measure("kafka", 100.0), measure("tidelog", 100.0 * reached)]
    (judged,) = judge([demand(**bound)], measures, whole=True)
    assert (judged["ratio"], judged["ok"]) == (pytest.approx(reached), ok)


def test_a_system_that_is_not_there_meets_nothing() -> None:
    (judged,) = judge([demand(at_most=9.0)], [measure("kafka", 1.0), measure("tidelog table", 1.0)], whole=False)
    assert (judged["ratio"], judged["ok"]) == (None, False)


@pytest.mark.parametrize(("bound", "ok"), [(5.0, True), (4.9, False)])
def test_without_a_baseline_the_figure_itself_is_judged(bound: float, ok: bool) -> None:
    (judged,) = judge([replace(demand(at_most=bound), baseline="")], [measure("tidelog", 4.0, 5.0, 6.0)], whole=True)
    assert (judged["ratio"], judged["ok"]) == (5.0, ok)


def test_growth_is_judged_by_nobody() -> None:
    grown = [measure(system, 1.0, at=10.0, axis="partitions") for system in ("tidelog", "kafka")]
    (judged,) = judge([demand(at_least=1.0)], grown, whole=True)
    assert judged["ratio"] is None


def test_cases_that_were_not_asked_for_are_not_judged() -> None:
    measures = [measure("tidelog", 1.0), measure("kafka", 1.0)]
    demands = [demand(at_least=1.0), demand("read", at_least=1.0)]
    assert [one["case"] for one in judge(demands, measures, whole=False)] == ["write"]
    assert [(one["case"], one["ok"]) for one in judge(demands, measures, whole=True)] == [
        ("write", True),
        ("read", False),
    ]


@pytest.mark.parametrize("bounds", [{}, {"at_least": 1.0, "at_most": 2.0}])
def test_a_demand_has_one_bound(bounds: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="either at_least or at_most"):
        demand(**bounds)


def test_a_measure_without_rounds_or_direction_is_refused() -> None:
    with pytest.raises(ValueError, match="no rounds"):
        measure("tidelog")
    with pytest.raises(ValueError, match="sideways"):
        Measure("write", "tidelog", "throughput", "records/s", "sideways", [1.0])


def test_a_measure_comes_back_from_the_results_file() -> None:
    one = measure("tidelog", 3.0, 1.0, 2.0, at=4.0, axis="segments", samples=[0.5])
    body = one.as_json()
    assert Measure.from_json(body) == one
    assert (body["median"], body["min"], body["max"]) == (2.0, 1.0, 3.0)


def test_every_case_is_run_and_told_of() -> None:
    assert sorted(CASES) == sorted(path.stem.removeprefix("case_") for path in PEERS.glob("case_*.py"))
    for name in CASES:
        text = (PEERS / f"case_{name}.py").read_text(encoding="utf-8")
        assert re.search(r'^TITLE = ".+"$', text, re.MULTILINE), name
        assert re.search(r"^def run\(bench: Bench\) -> list\[Measure\]:$", text, re.MULTILINE), name


@pytest.mark.parametrize("one", DEMANDS, ids=lambda one: f"{one.case}-{one.system}")
def test_a_demand_names_what_a_case_measures(one: Demand) -> None:
    texts = [path.read_text(encoding="utf-8") for path in PEERS.glob("*.py") if path.name != "demands.py"]
    for word in filter(None, (one.case, one.system, one.baseline)):
        assert any(names(text, word) for text in texts), word


def names(text: str, word: str) -> bool:
    """Whether a program has the word, as it is or as `{system} Java {codec}`."""
    built = [re.sub(r"\\{\w+\\}", r"\\S+", re.escape(form)) for form in re.findall(r'f"(\{system\} [^"]+)"', text)]
    return f'"{word}"' in text or any(re.fullmatch(form, word) for form in built)

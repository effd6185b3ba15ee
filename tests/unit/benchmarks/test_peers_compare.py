"""Side by side: two runs compared, regressions beyond the noise."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from compare import compared, main, moved
from measures import Measure
from rich.console import Console
from support.peers import MACHINE, MEASURES, rate, results, size, wait

BEFORE = [1.00, 1.02, 0.98]


def said(old: Path, new: Path) -> tuple[int, str]:
    told = io.StringIO()
    return main(old, new, Console(file=told, width=200)), told.getvalue()


def verdicts(old: Sequence[Measure], new: Sequence[Measure]) -> dict[str, str]:
    return {change.new.system: change.verdict for change in compared(results(old), results(new)).changes}


@pytest.mark.parametrize(
    ("new", "better", "expected"),
    [
        ([0.80, 0.81, 0.79], "higher", "regression"),
        ([0.80, 0.81, 0.79], "lower", "better"),
        ([1.20, 1.21, 1.19], "higher", "better"),
        ([1.20, 1.21, 1.19], "lower", "regression"),
        ([0.80, 0.81, 0.99], "higher", "same"),  # one round is as good as one of the old ones
        ([0.95, 0.95, 0.95], "higher", "same"),  # less than a tenth
        ([1.00, 1.02, 0.98], "higher", "same"),
        ([0.50], "higher", "one round"),
    ],
)
def test_a_regression_is_beyond_the_spread_and_beyond_a_tenth(new: list[float], better: str, expected: str) -> None:
    assert moved(BEFORE, new, better) == expected


def test_what_slowed_kafka_down_as_much_is_the_machine() -> None:
    old = [rate("tidelog", [2.0, 2.1]), rate("kafka", [1.0, 1.05])]
    slower = [rate("tidelog", [1.0, 1.05]), rate("kafka", [0.5, 0.525])]
    assert verdicts(old, slower) == {"tidelog": "same", "kafka": "same"}


def test_what_slowed_tidelog_alone_is_a_regression() -> None:
    old = [rate("tidelog", [2.0, 2.1]), rate("kafka", [1.0, 1.05])]
    assert verdicts(old, [rate("tidelog", [1.0, 1.05]), old[1]]) == {"tidelog": "regression", "kafka": "same"}


def test_a_peer_that_became_slower_is_no_regression() -> None:
    old = [rate("tidelog", [2.0, 2.1]), rate("kafka", [1.0, 1.05])]
    assert verdicts(old, [old[0], rate("kafka", [0.1, 0.1])]) == {"tidelog": "same", "kafka": "same"}


def test_without_a_peer_the_figure_stands_for_itself() -> None:
    assert verdicts([wait("tidelog", [1.0, 1.1])], [wait("tidelog", [2.0, 2.1])]) == {"tidelog": "regression"}


def test_other_rounds_than_before_are_judged_by_the_median_of_the_ratios() -> None:
    old = [rate("tidelog", [2.0, 2.1]), rate("kafka", [1.0, 1.05])]
    new = [rate("tidelog", [1.0, 1.05, 1.1]), rate("kafka", [1.0, 1.05])]
    assert verdicts(old, new)["tidelog"] == "regression"


def test_bytes_on_disk_need_no_second_round() -> None:
    old = [size("tidelog", 30.0), size("kafka", 37.0)]
    assert verdicts(old, [size("tidelog", 34.0), old[1]]) == {"tidelog": "regression", "kafka": "same"}
    assert verdicts(old, [size("tidelog", 31.0), old[1]])["tidelog"] == "same"
    assert verdicts([wait("tidelog", [1.0])], [wait("tidelog", [9.0])]) == {"tidelog": "one round"}


def test_equal_runs_have_no_regression(tmp_path: Path) -> None:
    results().write(tmp_path / "old.json")
    code, text = said(tmp_path / "old.json", tmp_path / "old.json")
    assert code == 0
    assert f"no regressions in {len(MEASURES)} figures" in text
    assert "warning" not in text


def test_a_regression_is_the_exit_code(tmp_path: Path) -> None:
    results().write(tmp_path / "old.json")
    slower = replace(MEASURES[0], rounds=[one / 2 for one in MEASURES[0].rounds])
    results([slower, *MEASURES[1:]]).write(tmp_path / "new.json")
    code, text = said(tmp_path / "old.json", tmp_path / "new.json")
    assert code == 1
    assert "1 regression in" in text
    (line,) = [line for line in text.splitlines() if "regression (" in line]
    for shown in ("Spark batch write: tidelog", "1.30 M records/s", "650 k records/s", "-50.0%"):
        assert shown in line
    assert "2.17x Kafka, now 1.08x" in line


def test_what_is_in_one_of_the_runs_only_is_told(tmp_path: Path) -> None:
    results(MEASURES[:4]).write(tmp_path / "old.json")
    results(MEASURES[1:5]).write(tmp_path / "new.json")
    _, text = said(tmp_path / "old.json", tmp_path / "new.json")
    assert "only in the old run: Spark batch write: tidelog\n" in text
    assert "only in the new run: Client latency, p50: tidelog\n" in text


def test_another_machine_and_a_quick_run_are_warnings() -> None:
    other = {**MACHINE, "cores": 64, "versions": {**MACHINE["versions"], "kafka": "5.0", "tidelog": "0.2.0"}}
    found = compared(results(), results(machine=other, settings={"whole": False, "quick": True})).warnings
    assert found == (
        "other machines: cores was 2, is 64",
        "one of the runs was quick: its cases are smaller",
        "other versions: kafka was 4.1.2, is 5.0",
    )


def test_files_that_cannot_be_compared(tmp_path: Path) -> None:
    results(MEASURES[:4]).write(tmp_path / "one.json")
    results(MEASURES[4:]).write(tmp_path / "other.json")
    (tmp_path / "bench.json").write_text('{"kind": "bench", "rows": []}')
    for new, why in (("other.json", "no figure in common"), ("bench.json", "holds no results"), ("gone", "holds no")):
        code, text = said(tmp_path / "one.json", tmp_path / new)
        assert (code, why in text) == (2, True), text

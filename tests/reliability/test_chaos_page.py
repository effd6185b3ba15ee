"""RELIABILITY.md has the figures of a recorded run that was long enough and found nothing."""

import json

import pytest
from chaos_page import BEGIN, END, PAGE, RECORDED, rendered
from chaos_run import FAULTS


def test_the_page_has_the_figures_of_the_recorded_run() -> None:
    run = json.loads(RECORDED.read_text())
    assert PAGE.read_text() == rendered(PAGE.read_text(), run)
    assert run["problems"] == []
    assert run["counts"]["acknowledged"] >= 100_000
    assert min(run["rounds"][fault] for fault in FAULTS) >= 5


def test_a_page_without_a_place_for_figures_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for figures"):
        rendered(f"{END}{BEGIN}", {})

"""The speeds of docs/speed.md: a whole run, and the cases that were measured again since."""

from typing import Any

import pytest
from report import newest, renewed

MACHINE = {"cpu": "a processor", "cores": 2, "file_system": "ext4"}


def body(at: str, *rows: tuple[str, str], quick: bool = False, **machine: Any) -> dict[str, Any]:
    return {
        "at": at,
        "settings": {"quick": quick},
        "machine": {**MACHINE, **machine},
        "rows": [{"what": what, "measured": measured} for what, measured in rows],
    }


WHOLE = body("2026-01-02T10:00", ("append", "2 ms"), ("sink", "0.9x"), ("idle", "1 %"))


def test_rows_measured_again_take_the_place_of_the_whole_runs() -> None:
    found = renewed(WHOLE, body("2026-01-02T11:00", ("sink", "1.1x"), ("new", "3 s")))
    assert [(row["what"], row["measured"]) for row in found["rows"]] == [
        ("append", "2 ms"),
        ("sink", "1.1x"),
        ("idle", "1 %"),
        ("new", "3 s"),
    ]
    assert found["again"] == [{"at": "2026-01-02T11:00", "rows": ["sink", "new"]}]


def test_a_run_counts_once() -> None:
    later = body("2026-01-02T11:00", ("sink", "1.1x"))
    once = renewed(WHOLE, later)
    assert renewed(once, later) == once


@pytest.mark.parametrize(
    "later",
    [
        None,
        body("2026-01-02T09:00", ("sink", "1.1x")),
        body("2026-01-02T11:00", ("sink", "1.1x"), quick=True),
        body("2026-01-02T11:00", ("sink", "1.1x"), cores=64),
    ],
    ids=["none", "earlier", "quick", "another machine"],
)
def test_what_does_not_count(later: dict[str, Any] | None) -> None:
    assert renewed(WHOLE, later) == WHOLE


def test_of_one_run_the_results_that_were_kept_count() -> None:
    kept = renewed(WHOLE, body("2026-01-02T11:00", ("sink", "1.1x")))
    assert newest(WHOLE, kept) is kept
    assert newest(WHOLE, None) is WHOLE
    assert newest(None, kept) is kept
    another = body("2026-01-02T12:00", ("sink", "1.0x"))
    assert newest(another, kept) is another

"""The speeds of docs/speed.md: a whole run, and the cases that were measured again since."""

from pathlib import Path
from typing import Any

import pytest
from report import SECTIONS, missing_cases, newest, renewed, write_tables
from support.peers import MACHINE as MACHINE_OF_A_RUN

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


def test_a_case_that_failed_is_to_be_measured_again() -> None:
    rows = [{"what": "append", "measured": "2 ms", "case": "append"}]
    whole = {**WHOLE, "settings": {"quick": False, "failed": ["registry"]}, "rows": rows}
    assert missing_cases(whole) == ["registry"]
    later = {**WHOLE, "at": "2026-01-02T11:00", "rows": [{"what": "ids", "measured": "1 ms", "case": "registry"}]}
    assert missing_cases(renewed(whole, later)) == []


def test_of_one_run_the_results_that_were_kept_count() -> None:
    kept = renewed(WHOLE, body("2026-01-02T11:00", ("sink", "1.1x")))
    assert newest(WHOLE, kept) is kept
    assert newest(WHOLE, None) is WHOLE
    assert newest(None, kept) is kept
    another = body("2026-01-02T12:00", ("sink", "1.0x"))
    assert newest(another, kept) is another


PAGE = "\n".join(f"<!-- {name}:begin -->\nold {name}\n<!-- {name}:end -->" for name in ("bench", *SECTIONS))
ROW = {"must": "≤ 3 ms", "measured": "2 ms", "ok": True}


def test_each_section_gets_the_rows_of_its_cases_and_one_without_rows_stays(tmp_path: Path) -> None:
    page = tmp_path / "speed.md"
    page.write_text(PAGE)
    rows = [
        {**ROW, "what": "append", "case": "append"},
        {**ROW, "what": "ack of one record", "case": "broker_ack", "ok": False},
        {**ROW, "what": "as kept before rows named their cases"},
    ]
    write_tables(page, [{**WHOLE, "kind": "bench", "machine": MACHINE_OF_A_RUN, "rows": rows}])
    blocks = {
        name: page.read_text().partition(f"<!-- {name}:begin -->\n")[2].partition("\n<!--")[0] for name in SECTIONS
    }
    assert blocks.pop("bench-brokers").splitlines()[:4] == [
        "| what | must reach | measured | case |",
        "|---|---|---|---|",
        "| ack of one record | ≤ 3 ms | 2 ms (short) | `broker_ack` |",
        "",
    ]
    assert blocks == {name: f"old {name}" for name in blocks}
    assert "| append | ≤ 3 ms | 2 ms | `append` |\n| as kept before" in page.read_text()

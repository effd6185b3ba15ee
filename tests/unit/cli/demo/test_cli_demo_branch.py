"""tidelog demo --branch, on a few flights: what it does is so, and a wrong result is said."""

import io
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from rich.console import Console

from tidelog.cli.demo import branch_steps
from tidelog.cli.demo.flights import Flights
from tidelog.lakes import Lake

FEW, MOST = 20, 60


def flights() -> Flights:
    hours = [datetime(2013, 1, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(MOST)]
    year = pa.table(
        {"carrier": [f"C{n % 7}" for n in range(MOST)], "time_hour": hours, "dep_delay": [n % 90 for n in range(MOST)]}
    )
    return Flights(year, year.slice(0, 0), {})


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run it; (its code, what it said)."""
    for name, count in (("BEFORE", FEW), ("AFTER", FEW), ("BATCH", FEW // 2)):
        monkeypatch.setattr(branch_steps, name, count)

    def called():
        console = Console(file=(shown := io.StringIO()), width=100)
        return branch_steps.run_branch(tmp_path / "lake", console, flights()), shown.getvalue()

    return called


def test_what_a_bad_producer_wrote_is_gone_and_nothing_else(run, tmp_path):
    code, shown = run()
    assert (code, "Done in" in shown) == (0, True), shown
    with Lake(tmp_path / "lake", create=False) as lake:
        assert len(lake.topic("flights").to_arrow()) == 2 * FEW
        assert lake.cuts() == {}
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]
    assert run()[0] == 0  # again, in the same folder


def test_a_wrong_result_is_said(run, monkeypatch):
    monkeypatch.setattr(branch_steps, "_in_seconds", lambda value: value)
    monkeypatch.setattr(branch_steps, "parse_where", lambda _: lambda *_: None)
    monkeypatch.setattr(branch_steps, "_delay", lambda _: 10**6)
    monkeypatch.setattr(branch_steps, "rewind_topics", lambda *_, **__: type("Done", (), {"failed": ("flights",)})())
    code, shown = run()
    assert code == 1
    assert "checks failed" in shown

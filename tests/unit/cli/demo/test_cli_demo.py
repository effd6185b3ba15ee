"""The demo's parts that need no Spark: its data, its lake, what it shows and what it says to try."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from rich.console import Console
from support.cli_calls import cli
from support.logs import FakeClock
from support.pages import tidelog_calls

from tidelog.cli.demo.flights import as_records, closed_averages, count_by, parse_averages
from tidelog.cli.demo.lake import PARTITIONS, DemoFolder
from tidelog.cli.demo.run import commands
from tidelog.cli.demo.screen import Screen, seconds
from tidelog.commands.failures import UsageProblemError
from tidelog.log.lake import Lake


def hour(number: int) -> datetime:
    return datetime(2013, 1, 1, tzinfo=UTC) + timedelta(hours=number)


def flights(*rows: tuple[str, int, str, int | None]) -> pa.Table:
    """Flights by origin, hour, carrier and delay; None was cancelled."""
    origins, hours, carriers, delays = zip(*rows, strict=True)
    return pa.table(
        {
            "origin": origins,
            "time_hour": pa.array([hour(h) for h in hours], pa.timestamp("s", "UTC")),
            "carrier": carriers,
            "dep_delay": pa.array(delays, pa.int64()),
        }
    )


def test_an_hour_is_closed_when_it_ends_the_lateness_before_the_last_flight() -> None:
    """
    hour      0         1         2         3
    flights   EWR EWR   EWR       -         EWR: with an hour's lateness, closed until 2
    """
    found = closed_averages(
        flights(
            ("EWR", 0, "UA", 10), ("EWR", 0, "AA", 5), ("EWR", 1, "UA", None), ("JFK", 1, "B6", -3), ("EWR", 3, "UA", 1)
        ),
        timedelta(hours=1),
    )
    assert found == {
        ("EWR", hour(0)): (2, 2, 7.5),
        ("EWR", hour(1)): (1, 0, None),
        ("JFK", hour(1)): (1, 1, -3.0),
    }


def test_averages_are_read_back_and_a_repeated_hour_is_seen() -> None:
    once = b'{"origin":"EWR","hour":"2013-01-01T01:00:00.000Z","flights":2,"departed":2,"average_delay":7.5}'
    none = b'{"origin":"EWR","hour":"2013-01-01T02:00:00.000Z","flights":1,"departed":0}'
    assert parse_averages([once, none, once]) == ({("EWR", hour(1)): (2, 2, 7.5), ("EWR", hour(2)): (1, 0, None)}, 3)


def test_flights_become_json_without_nulls_keyed_by_carrier() -> None:
    records = as_records(flights(("EWR", 5, "UA", None)))
    assert records["key"].to_pylist() == ["UA"]
    assert records["timestamp"].to_pylist() == [hour(5)]
    assert orjson.loads(records["value"][0].as_py()) == {
        "origin": "EWR",
        "time_hour": "2013-01-01T05:00:00.000Z",
        "carrier": "UA",
    }


def test_values_are_counted() -> None:
    assert count_by(pa.array(["a", "b", "a"])) == {"a": 2, "b": 1}


def test_the_lake_starts_afresh(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path / "lake")
    with Lake(str(folder.lake)) as lake:
        assert folder.start_afresh(lake) is False
        assert {name: len(lake.describe_topic(name).partitions) for name in lake.topics()} == PARTITIONS
        lake.topic("flights").append(pa.table({"value": ["old"]}))
        folder.checkpoint.mkdir()

        assert folder.start_afresh(lake) is True
        assert {end for _, end in lake.offsets("flights").values()} == {0}
        assert not folder.checkpoint.exists()


def test_the_typed_topic_is_the_demos_too(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path / "lake")
    with Lake(str(folder.lake)) as lake:
        folder.start_afresh(lake)
        folder.create_typed(lake, {"value.columns": "avro", "value.schema": '"string"'})
        assert sorted(lake.topics()) == sorted([*PARTITIONS, "typed_flights"])
        assert folder.start_afresh(lake) is True
        assert sorted(lake.topics()) == sorted(PARTITIONS)

        lake.create_topic("typed_flights")
        with pytest.raises(UsageProblemError, match="a topic 'typed_flights' that is not the demo's"):
            folder.start_afresh(lake)


def test_a_topic_that_is_not_the_demos_is_left_alone(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path / "lake")
    with Lake(str(folder.lake)) as lake:
        folder.start_afresh(lake)
        lake.delete_topic("flights")
        mine = lake.create_topic("flights").id
        with pytest.raises(UsageProblemError, match="a topic 'flights' that is not the demo's"):
            folder.start_afresh(lake)
        assert lake.describe_topic("flights").id == mine


@pytest.mark.parametrize(
    ("elapsed_s", "shown"),
    [(0.0312, "31 ms"), (0.9996, "1.0 s"), (12.345, "12.3 s"), (59.96, "1 min 0 s"), (75, "1 min 15 s")],
)
def test_durations_are_short(elapsed_s: float, shown: str) -> None:
    assert seconds(elapsed_s) == shown


def shown_by(screen_width: int, *, holds: bool) -> tuple[list[str], int]:
    """The lines that a step with a check shows, and how many checks failed."""
    out = io.StringIO()
    clock = FakeClock()
    screen = Screen(Console(file=out, width=screen_width), clock)
    with screen.step("A step") as step:
        clock.pass_s(2)
        step.check(holds, "it holds", "3 instead of 4.")
    return out.getvalue().splitlines(), screen.failed


def test_a_step_shows_its_time_at_the_right_and_its_checks_below() -> None:
    assert shown_by(40, holds=True) == ([" 1  A step" + "2.0 s".rjust(30), "    ✓ it holds".ljust(40), ""], 0)


def test_a_check_that_fails_says_what_was_found_and_counts() -> None:
    lines, failed = shown_by(60, holds=False)
    assert lines[1].strip() == "✗ it holds: not so. 3 instead of 4."
    assert failed == 1


def test_a_step_is_no_wider_than_people_read() -> None:
    assert {len(line) for line in shown_by(100_000, holds=True)[0]} == {0, 100}


@pytest.mark.parametrize("lake", [Path("demo-lake"), Path("/tmp/my lake")])
def test_what_it_says_to_try_are_commands(lake: Path) -> None:
    for _, command in commands("tidelog", lake):
        (call,) = tidelog_calls(command)
        assert call[:2] == ["--lake", str(lake)]
        assert cli(*call, "--help").exit_code == 0

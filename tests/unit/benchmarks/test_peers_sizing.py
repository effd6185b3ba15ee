"""The block of docs/brokers.md: what a core does, by the size of batches."""

from pathlib import Path

from measures import Measure
from sizing import block, write
from support.peers import MEASURES, results


def lower(case: str, system: str, metric: str, unit: str, figure: float) -> Measure:
    return Measure(f"broker core {case}", system, metric, unit, "lower", [figure])


def us(system: str, figure: float, case: str = "produce") -> Measure:
    return lower(case, system, "processor time", "us a record", figure)


CORE = [
    us("tidelog 1,000 none w2", 9.0),
    us("tidelog 1,000 none w4", 0.5),
    us("tidelog 1,000 none mixed w4", 9.0),
    us("tidelog 1,000 lz4 w4", 0.8),
    us("tidelog 1 none w4", 25.0),
    us("kafka 1 none w4", 9.0),
    us("tidelog hot", 0.1, "consume"),
    us("tidelog cold", 0.2, "consume"),
    us("tidelog cold, from segments", 0.4, "consume"),
    lower("produce", "tidelog", "memory of the process", "MiB", 306.4),
    lower("processes", "tidelog 8 processes", "idle", "cores", 0.04),
]


def test_what_a_core_does() -> None:
    text = block(results(measures=[*MEASURES, *CORE]))
    assert text.splitlines()[:10] == [
        "| records of 100 B a batch | not packed | packed by lz4 |",
        "|---|---|---|",
        "| 1,000 | 2.00 M records/s | 1.25 M records/s |",
        "| 100 |  |  |",
        "| 10 |  |  |",
        "| 1 | 40.0 k records/s |  |",
        "",
        "Consumers get 10.0 M records/s of a core from its cache, 5.00 M records/s from files of batches, and 2.50 M"
        " records/s from segments.",
        "The process had 306 MiB of memory at most.",
        "Eight processes that have nothing to do take 0.04 of a core together.",
    ]
    assert text.splitlines()[10].startswith("Measured on 2026-01-02: 2 cores (a processor)")


def test_a_page_stays_as_it_is_where_nothing_was_measured(tmp_path: Path) -> None:
    page = tmp_path / "brokers.md"
    before = "# Sizing\n<!-- peers-sizing:begin -->\nNot measured yet.\n<!-- peers-sizing:end -->\nMore.\n"
    page.write_text(before)
    write(results(), page)
    assert page.read_text() == before
    write(results(measures=CORE), page)
    assert "Not measured" not in page.read_text()
    assert page.read_text().startswith("# Sizing\n<!-- peers-sizing:begin -->\n| records of 100 B a batch |")

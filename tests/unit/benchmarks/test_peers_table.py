"""Side by side: the table for people, and the blocks of docs/speed.md and README.md."""

import io
from pathlib import Path

import pytest
import report
from measures import Demand, Measure
from rich.console import Console
from support.peers import MEASURES, rate, results, wait
from table import amount, markdown, section, sentences, show, spread, summary, times

DEMANDS = (
    Demand("spark batch write", "throughput", "tidelog", "kafka", "twice as fast", at_least=2),
    Demand("bytes on disk, flights", "bytes per record", "tidelog merged", "kafka", "small", at_most=0.5),
)
BLOCK = """\
| | tidelog | Kafka | Delta | to Kafka | to Delta |
|---|---|---|---|---|---|
| Spark batch write | 1.30 M records/s | 600 k records/s | 1.25 M records/s | **2.17x** (≥ 2x) | 1.08x |
| Spark batch write, Kafka uncompressed | 1.30 M records/s | 750 k records/s |  | **1.73x** |  |
| Client latency, p50 | 4.10 ms | 2.00 ms |  | 2.10x |  |
| Bytes on disk, flights | 35.5 B | 37.0 B | 42.0 B | **0.96x** | **0.85x** |
| Bytes on disk, flights, merged | 27.0 B | 37.0 B | 42.0 B | **0.73x** (≤ 0.5x: short) | **0.64x** |
"""


def test_the_block_of_the_page_of_speeds() -> None:
    block = markdown(results(demands=DEMANDS), [("a/b.png", "what it shows")])
    assert block.startswith(BLOCK)
    assert "\n![what it shows](a/b.png)\n" in block
    assert block.endswith("[peers.html](../benchmarks/results/peers.html).")
    assert "Measured on 2026-01-02: 2 cores (a processor), 16 GiB, ext4, Python 3.11.7, Spark 4.2.0, " in block
    assert "Delta 4.4.0, Kafka 4.1.2." in block


def test_the_readme_has_differences_and_few_lines_with_the_best_in_bold() -> None:
    head, *rows, _, footer = summary(results()).splitlines()
    assert head == "| | tidelog | Kafka | Delta alone |"
    assert rows[-3:] == [
        "| Spark batch write | **1.30 M records/s** | 600 k records/s | 1.25 M records/s |",
        "| Bytes on disk, flights | **35.5 B** | 37.0 B | 42.0 B |",
        "| Client latency, p50 | 4.10 ms | **2.00 ms** |  |",
    ]
    assert "| what has to run | nothing; a broker for Kafka's clients | brokers | nothing |" in rows
    assert footer.startswith("Measured on 2026-01-02: 2 cores (a processor), ")


BROKERS = (
    rate("tidelog none", [540e3], "broker produce"),
    rate("kafka none", [600e3], "broker produce"),
    wait("tidelog", [4.5], "broker latency"),
    wait("kafka", [2.8], "broker latency"),
)


def test_kafkas_clients_at_a_broker_have_lines_in_the_readme() -> None:
    rows = summary(results(measures=[*MEASURES, *BROKERS])).splitlines()
    assert "| Kafka's client over a broker: produce | 540 k records/s | **600 k records/s** |  |" in rows
    assert "| Kafka's client over a broker: latency, p50 | 4.50 ms | **2.80 ms** |  |" in rows


def test_cases_of_brokers_are_in_their_section_and_not_in_the_main_table() -> None:
    measured = results(measures=[*MEASURES, *BROKERS])
    assert section(measured, "broker ").splitlines()[:4] == [
        "| | tidelog | Kafka | to Kafka |",
        "|---|---|---|---|",
        "| Broker produce, none | 540 k records/s | 600 k records/s | 0.90x |",
        "| Broker latency, p50 | 4.50 ms | 2.80 ms | 1.61x |",
    ]
    assert "| Broker" not in markdown(measured)
    assert section(results(), "broker ") == ""


CORE = [
    Measure("broker core x", system, "cores", "cores", "lower", [cores])
    for system, cores in (("tidelog", 0.5), ("tidelog 2 processes", 0.6), ("kafka", 0.25))
]
CORE_DEMANDS = (
    Demand("broker core x", "cores", "tidelog", "", "little", at_most=0.4),
    Demand("broker core x", "cores", "tidelog 2 processes", "tidelog", "like one", at_most=1.3),
)


def test_the_section_of_the_longest_name_has_a_case_its_notes_and_bounds_without_kafka() -> None:
    noted = {"whole": True, "quick": False, "notes": {"a_case": "java ran"}}
    measured = results(measures=[*MEASURES, *BROKERS, *CORE], demands=CORE_DEMANDS, settings=noted)
    assert "core" not in section(measured, "broker ").partition("Measured on")[0]
    assert section(measured, "broker core ").splitlines()[2:6] == [
        "| Broker core x | 0.50 cores | 0.25 cores | 2.00x (≤ 0.4 cores: short) |",
        "| Broker core x, 2 processes | 0.60 cores | 0.25 cores | 2.40x (≤ 1.3x of tidelog's) |",
        "",
        "a_case: java ran.",
    ]


def test_the_words_say_first_where_the_others_are_ahead() -> None:
    kafka, _, delta = sentences(results())
    assert kafka == (
        "**Against Kafka.** Kafka is ahead in: Client latency (2.10 times); Growth of records (101 times). tidelog is "
        "ahead in: Spark batch write (1.73 to 2.17 times); Bytes on disk, flights (1.04 to 1.37 times)."
    )
    assert delta == (
        "**Against Delta.** tidelog is ahead in: Bytes on disk, flights (1.18 to 1.56 times). Even: Spark batch write."
    )


def test_what_a_run_did_not_get_to_is_told() -> None:
    *_, told = sentences(results(settings={"whole": True, "quick": False, "failed": ["growth"]}))
    assert told.startswith("**Not measured in this run**")
    assert told.endswith(": growth.")


def test_the_terminal_shows_every_figure_with_its_spread() -> None:
    told = io.StringIO()
    show(results(demands=DEMANDS), Console(file=told, width=200))
    text = told.getvalue()
    for shown in ("1.30 M records/s", "1.25M..1.35M", "≥ 2x ok", "≤ 0.5x short", "at 10,000 records", "590k..610k"):
        assert shown in text
    assert "at 1,000,000 records" in text  # where Kafka has no figure


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (1_304_000, "records/s", "1.30 M records/s"),
        (20_960, "appends/s", "21.0 k appends/s"),
        (568.2, "appends/s", "568 appends/s"),
        (1_234.0, "ms", "1,234 ms"),
        (0.0123, "s", "0.012 s"),
        (0.0, "ms", "0 ms"),
        (35.52, "B", "35.5 B"),
        (2_500_000_000, "B", "2.50 GB"),
    ],
)
def test_figures_have_three_digits_and_a_unit(value: float, unit: str, expected: str) -> None:
    assert amount(value, unit) == expected


def test_ratios_and_spreads() -> None:
    assert [times(value) for value in (2.17, 0.0271, 41.23, 1234.5)] == ["2.17x", "0.027x", "41.2x", "1,234x"]
    writes = results().measures[0]
    assert spread(writes) == "1.25M..1.35M"
    assert spread(results().measures[6]) == ""


def test_a_block_is_put_between_its_own_marks(tmp_path: Path) -> None:
    page = tmp_path / "speed.md"
    page.write_text(
        "a\n<!-- bench:begin -->\nx\n<!-- bench:end -->\n<!-- peers:begin -->\nold\n<!-- peers:end -->\nb\n"
    )
    report.write_block(page, "peers", "new")
    assert page.read_text() == (
        "a\n<!-- bench:begin -->\nx\n<!-- bench:end -->\n<!-- peers:begin -->\nnew\n<!-- peers:end -->\nb\n"
    )


@pytest.mark.parametrize("text", ["", "<!-- peers:end --><!-- peers:begin -->", "<!-- peers:begin -->" * 2])
def test_a_page_without_the_marks_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    page = tmp_path / "speed.md"
    page.write_text(text)
    with pytest.raises(SystemExit, match="has no block"):
        report.write_block(page, "peers", "new")
    assert page.read_text() == text

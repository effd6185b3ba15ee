"""The figures of the last recorded run in RELIABILITY.md: `python tests/reliability/chaos_page.py` writes them."""

import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded_run.json")
PAGE = Path(__file__).parents[2] / "RELIABILITY.md"
BEGIN, END = "<!-- figures: make reliability RELIABILITY_ARGS=--record -->\n", "<!-- end of the figures -->\n"


def rendered(page: str, run: dict[str, Any]) -> str:
    """The page with the figures of a run in the place of those that it has."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has no place for figures between {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{figures(run)}\n{END}{after}"


def figures(run: dict[str, Any]) -> str:
    """The tables of a run."""
    rounds = " | ".join(f"{count}" for _, count in sorted(run["rounds"].items()))
    lines = [
        f"Seed {run['seed']}, {run['seconds']:.0f} s in all, {len(run['problems'])} problems.",
        "",
        "| rounds of | " + " | ".join(sorted(run["rounds"])) + " |",
        "|---|" + "---|" * len(run["rounds"]),
        f"| | {rounds} |",
        "",
        "| what | how many |",
        "|---|---|",
        *(f"| {what} | {count:,} |" for what, count in run["counts"].items()),
    ]
    return "\n".join(lines) + "\n"


def write_page() -> None:
    """Put the recorded run's figures into the page."""
    PAGE.write_text(rendered(PAGE.read_text(), json.loads(RECORDED.read_text())))


if __name__ == "__main__":
    write_page()

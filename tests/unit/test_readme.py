"""What the README says is there: its options, links, targets of make; what stands where."""

import re

import pytest
from support.pages import ROOT, blocks, text_of

from tidelog.log.spark_options import SINK_OPTIONS, SOURCE_OPTIONS

TEXT = text_of("README.md")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def table(heading: str) -> list[str]:
    """The names in the first column of the table with this heading."""
    rows = TEXT[TEXT.index(heading) :].split("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_two_commands_begin_it() -> None:
    first = blocks("README.md", "sh")[0].code
    assert [line.partition("  ")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", TEXT, re.MULTILINE))
    assert {"demo", "test", "setup", "bench"} <= targets
    assert [name for name in targets if not re.search(rf"^{name}:", MAKEFILE, re.MULTILINE)] == []


@pytest.mark.parametrize(("side", "known"), [("source", SOURCE_OPTIONS), ("sink", SINK_OPTIONS)])
def test_the_tables_have_the_options_of_the_code(side: str, known: tuple[str, ...]) -> None:
    named = {name for name in table(f"| {side}, batch and streaming") if not name.startswith(("kafka.", "TIDELOG_"))}
    assert named == {name for name in known if not name.startswith(("kafkaConsumer.", "fetchOffset."))}


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    local = [link for link in links if not link.startswith("https://")]
    assert {"ARCHITECTURE.md", "docs/format.md", "docs/configuration.md", "CONTRIBUTING.md"} <= set(local)
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_limits_come_before_features_and_the_figures_have_their_place() -> None:
    assert TEXT.index("\n## Limits") < TEXT.index("\n## Install") < TEXT.index("\n## A first streaming query")
    marks = [f"<!-- {name}:{end} -->" for name in ("bench", "peers") for end in ("begin", "end")]
    assert [TEXT.count(mark) for mark in marks] == [1, 1, 1, 1]


def test_the_first_query_fits_a_screen() -> None:
    assert len(blocks("README.md", "python")[0].code.splitlines()) <= 30

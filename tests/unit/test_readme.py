"""What README.md and the pages of docs/ say is there: targets of make; their order and length."""

import re

import pytest
from support.pages import PAGES, ROOT, blocks, text_of

TEXT = text_of("README.md")
# Of figures that runs of the benchmarks write.
BLOCKS = [
    "bench", "peers-brokers", "bench-brokers", "peers-core", "bench-schemas", "bench-mirrors", "bench-changes",
    "bench-console", "peers-streams", "peers",
]  # fmt: skip
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_a_newcomer_reads_it_in_five_minutes() -> None:
    assert len(TEXT.splitlines()) <= 250
    assert len(re.findall(r"!\[", TEXT)) == 1


def test_the_architecture_is_two_pages() -> None:
    assert len(text_of("ARCHITECTURE.md").splitlines()) <= 130


def test_there_are_at_most_twenty_terms_of_our_own() -> None:
    terms = text_of("docs/internals.md").partition("\n| term | means |\n")[2].splitlines()[1:]
    assert 10 <= len(terms) <= 20


def test_two_commands_come_first_then_a_query_a_comparison_and_limits() -> None:
    first = blocks("README.md", "sh")[0].code
    assert [line.partition("  ")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]
    order = ["Two commands", "A first streaming query", "Better and worse", "Limits", "Read on"]
    places = [TEXT.index(f"\n## {heading}") for heading in order]
    assert places == sorted(places)


def test_the_first_query_fits_a_screen() -> None:
    assert len(blocks("README.md", "python")[0].code.splitlines()) <= 30


def test_it_leads_to_every_page() -> None:
    pages = [f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")]
    assert [page for page in pages if f"({page})" not in TEXT] == []


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(page: str) -> None:
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", text_of(page), re.MULTILINE))
    assert [name for name in targets if not re.search(rf"^{name}:", MAKEFILE, re.MULTILINE)] == []


@pytest.mark.parametrize(
    ("page", "names"),
    [("README.md", ["peers"]), ("docs/speed.md", BLOCKS), ("docs/brokers.md", ["peers-sizing"])],
)
def test_the_figures_have_their_places(page: str, names: list[str]) -> None:
    marks = re.findall(r"^<!-- ([\w-]+:\w+) -->$", text_of(page), re.MULTILINE)
    assert marks == [f"{name}:{end}" for name in names for end in ("begin", "end")]

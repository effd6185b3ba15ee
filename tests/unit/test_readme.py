"""What the README says is there: its commands, options, links; and its Python compiles."""

import re

import pytest
from support.cli_calls import cli
from support.readme import ROOT, TEXT, blocks, tidelog_calls

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
SHELL = [code for _, code in blocks("sh")]
CALLS = [call for code in SHELL for call in tidelog_calls(code)]
OPTION_SOURCES = {"source": "sources/*.py", "sink": "sinks/*.py"}


def table(heading: str) -> list[str]:
    """The names in the first column of the table with this heading."""
    rows = TEXT[TEXT.index(heading) :].split("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_the_readme_has_code() -> None:
    assert len(CALLS) >= 8
    assert len(blocks("python")) >= 3
    assert [line.partition("  ")[0].strip() for line in SHELL[0].splitlines()] == ["make demo", "make test"]


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", TEXT, re.MULTILINE))
    assert {"demo", "test", "setup", "bench"} <= targets
    assert [name for name in targets if not re.search(rf"^{name}:", MAKEFILE, re.MULTILINE)] == []


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_commands_and_their_options_exist(call: list[str]) -> None:
    """An option that isn't there is refused before --help is looked at."""
    shown = cli(*call, "--help")
    assert shown.exit_code == 0, shown.output
    assert "Usage" in shown.stdout


def test_an_option_that_is_not_there_would_be_found() -> None:
    assert cli("consume", "events", "--sideways", "--help").exit_code == 2


@pytest.mark.parametrize(("number", "code"), list(enumerate(code for _, code in blocks("python"))))
def test_python_compiles(number: int, code: str) -> None:
    compile(code, f"README, block {number}", "exec")


@pytest.mark.parametrize("side", OPTION_SOURCES)
def test_options_of_the_tables_are_options_of_the_code(side: str) -> None:
    code = "".join(p.read_text(encoding="utf-8") for p in sorted(ROOT.glob(OPTION_SOURCES[side])))
    code += (ROOT / "platform/log/spark_options.py").read_text(encoding="utf-8")
    named = [name for name in table(f"| {side}, batch and streaming") if name != "TIDELOG_LAKE"]
    assert len(named) >= 7
    # "startingOffsets" may be put together from "starting" and "offsets" in the code.
    known = {text.lower() for text in re.findall(r'"([^"\n]+)"', code)}
    prefixes = ("starting", "ending", "")
    assert [
        name
        for name in named
        if not any(
            name.lower() in known or f"{{position}}{name.lower().removeprefix(prefix)}" in known for prefix in prefixes
        )
    ] == []


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
    assert len(blocks("python")[0][1].splitlines()) <= 30

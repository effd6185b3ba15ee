"""docs/operations.md says what to do about every finding of `check`, and names every logger."""

import re
from pathlib import Path

from tidelog.check.report import Kind

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
CODE = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "platform").rglob("*.py")))


def first_column(heading: str) -> list[str]:
    """The names in the first column of the table below a heading."""
    rows = re.findall(r"^\| (`[^|]*) \|", PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0], re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_every_finding_of_check_has_a_row_and_there_is_no_other() -> None:
    assert sorted(first_column("When `check` finds something")) == sorted(kind.value for kind in Kind)


def test_every_logger_has_a_row_and_there_is_no_other() -> None:
    loggers = set(re.findall(r'getLogger\("(tidelog\.\w+)"\)', CODE))
    assert loggers
    assert sorted(first_column("Logs")) == sorted(loggers)

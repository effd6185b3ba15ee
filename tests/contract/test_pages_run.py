"""The pages of docs/ run as they stand, each on an empty lake; those that start Spark are in tests/spark."""

from pathlib import Path

import pytest
from support.pages import PAGES, needs_spark, programs, run_page
from support.submitting import environment

from tidelog.log.lake import Lake

RUN = [page for page in PAGES if programs(page) and not needs_spark(page)]
PRINTS = {
    "docs/clients.md": "tea 12\n100 100\n['audited', 'clicks', 'refunds', 'sales', 'stock']\n[('sales', 0, 100)]\n"
}


@pytest.mark.parametrize("page", RUN)
def test_a_page_runs_as_it_stands(page: str, tmp_path: Path) -> None:
    Lake(str(tmp_path / "lake")).close()
    assert run_page(page, tmp_path, environment(tmp_path)).endswith(PRINTS.get(page, ""))

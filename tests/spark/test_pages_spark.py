"""The pages that start Spark run as they stand, in the order in which a person meets their blocks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pages import PAGES, needs_spark, run_page
from support.submitting import environment
from support.versitygw import S3Place

from tidelog.log.lake import Lake

SPARK = "docs/spark.md"
SCHEMAS = "docs/schemas.md"
STREAMS = "docs/streams.md"
CHANGES = "docs/changes-to-tables.md"
S3_PAGES = ["docs/object-stores.md"]
OTHERS = [page for page in PAGES if needs_spark(page) and page not in ("README.md", SPARK, STREAMS, CHANGES, *S3_PAGES)]


@pytest.fixture(autouse=True)
def spark() -> Iterator[None]:
    """Pages start sessions of their own."""
    return


@pytest.fixture(autouse=True)
def _no_query_outlives_its_test() -> None:
    """No query runs in this process."""


def test_the_readme_works_as_it_stands(tmp_path: Path) -> None:
    shown = run_page("README.md", tmp_path, environment(tmp_path))

    assert "0:3 cleo: JAM" in shown
    assert "| ann|     2|     2|" in shown
    assert "{0: (4, 5)}" in shown
    assert "[b'jam', b'salt']" in shown
    assert "1000 payments b'" in shown
    with Lake(str(tmp_path / "lake"), create=False) as opened:
        assert opened.offsets("orders") == {0: (0, 5)}
        assert opened.offsets("payments") == {0: (0, 1000)}


def test_the_page_about_spark_works_as_it_stands(tmp_path: Path) -> None:
    assert run_page(SPARK, tmp_path, environment(tmp_path)).endswith("4 orders\n")
    assert (tmp_path / "cities" / "_delta_log").is_dir()
    with Lake(str(tmp_path / "lake"), create=False) as opened:
        assert opened.offsets("cities") == {0: (0, 2)}


def test_the_page_about_streams_works_as_it_stands(tmp_path: Path) -> None:
    """Kafka Streams' examples: word count, page views by region, a join of sensors; and a test of a topology."""
    shown = run_page(STREAMS, tmp_path, environment(tmp_path))

    for line in ("|  kafka|    2|", "|streams|    2|", "|  asia|      5|    1|", "|europe|      5|    1|"):
        assert line in shown
    assert "[b'31.5 C at 40 %']" in shown
    with Lake(str(tmp_path / "lake"), create=False) as opened:
        assert opened.offsets("climate") == {0: (0, 1)}


def test_the_page_about_changes_makes_the_same_table_by_merge_and_by_a_view(tmp_path: Path) -> None:
    shown = run_page(CHANGES, tmp_path, environment(tmp_path))

    table = "|  1|     ann|    9|\n|  3|    cleo|    4|\n+"
    assert shown.count(table) == 2
    assert "bob" not in shown


@pytest.mark.parametrize("page", OTHERS)
def test_a_page_runs_as_it_stands(page: str, tmp_path: Path) -> None:
    if page == SCHEMAS:  # its shell blocks come first, and use a lake that is there
        Lake(str(tmp_path / "lake")).close()
    run_page(page, tmp_path, environment(tmp_path))


@pytest.mark.parametrize("page", S3_PAGES)
def test_a_page_about_s3_runs_as_it_stands(page: str, tmp_path: Path, s3: S3Place) -> None:
    bucket = s3.uri.rpartition("/")[0]
    run_page(
        page, tmp_path, {**environment(tmp_path), **s3.environment}, {"s3://bucket": bucket, "eu-west-1": s3.region}
    )

"""The pages that start Spark run as they stand, in the order in which a person meets their blocks."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.pages import PAGES, needs_spark, run_page
from support.pages_in_turn import run_in_turn
from support.submitting import environment
from support.versitygw import S3Place

from tidelog.log.lake import Lake

SPARK = "docs/spark.md"
SCHEMAS = "docs/schemas.md"
STREAMS = "docs/streams.md"
CHANGES = "docs/changes-to-tables.md"
S3_PAGES = ["docs/object-stores.md"]
Run = Callable[[str], tuple[Path, str]]
OTHERS = [page for page in PAGES if needs_spark(page) and page not in ("README.md", SPARK, STREAMS, CHANGES, *S3_PAGES)]


@pytest.fixture(autouse=True)
def spark() -> Iterator[None]:
    """Pages start sessions of their own."""
    return


@pytest.fixture(autouse=True)
def _no_query_outlives_its_test() -> None:
    """No query runs in this process."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, forked_workers: dict[str, str]) -> Run:
    """What a page printed and the folder that it ran in. All of them run when the first is asked for."""
    folder = tmp_path_factory.mktemp("pages")
    folders = {
        page: folder / str(number) for number, page in enumerate(["README.md", SPARK, STREAMS, CHANGES, *OTHERS])
    }
    for page, own in folders.items():
        own.mkdir()
        if page == SCHEMAS:  # its shell blocks come first, and use a lake that is there
            Lake(str(own / "lake")).close()
    found = run_in_turn(folders, {**environment(folder), **forked_workers})

    def of(page: str) -> tuple[Path, str]:
        ended, shown, errors = found[page]
        assert ended, shown + errors
        return folders[page], shown

    return of


def test_the_readme_works_as_it_stands(run: Run) -> None:
    folder, shown = run("README.md")

    assert "0:3 cleo: JAM" in shown
    assert "| ann|     2|     2|" in shown
    assert "{0: (4, 5)}" in shown
    assert "[b'jam', b'salt']" in shown
    assert "1000 payments b'" in shown
    with Lake(str(folder / "lake"), create=False) as opened:
        assert opened.offsets("orders") == {0: (0, 5)}
        assert opened.offsets("payments") == {0: (0, 1000)}


def test_the_page_about_spark_works_as_it_stands(run: Run) -> None:
    folder, shown = run(SPARK)
    assert shown.endswith("4 orders\n")
    assert (folder / "cities" / "_delta_log").is_dir()
    with Lake(str(folder / "lake"), create=False) as opened:
        assert opened.offsets("cities") == {0: (0, 2)}


def test_the_page_about_streams_works_as_it_stands(run: Run) -> None:
    """Kafka Streams' examples: word count, page views by region, a join of sensors; and a test of a topology."""
    folder, shown = run(STREAMS)

    for line in ("|  kafka|    2|", "|streams|    2|", "|  asia|      5|    1|", "|europe|      5|    1|"):
        assert line in shown
    assert "[b'31.5 C at 40 %']" in shown
    with Lake(str(folder / "lake"), create=False) as opened:
        assert opened.offsets("climate") == {0: (0, 1)}


def test_the_page_about_changes_makes_the_same_table_by_merge_and_by_a_view(run: Run) -> None:
    _, shown = run(CHANGES)

    table = "|  1|     ann|    9|\n|  3|    cleo|    4|\n+"
    assert shown.count(table) == 2
    assert "bob" not in shown


@pytest.mark.parametrize("page", OTHERS)
def test_a_page_runs_as_it_stands(page: str, run: Run) -> None:
    run(page)


@pytest.mark.parametrize("page", S3_PAGES)
def test_a_page_about_s3_runs_as_it_stands(
    page: str, tmp_path: Path, s3: S3Place, forked_workers: dict[str, str]
) -> None:
    """In a JVM of its own, which has the environment that it was started with."""
    bucket = s3.uri.rpartition("/")[0]
    shell = {**environment(tmp_path), **s3.environment, **forked_workers}
    run_page(page, tmp_path, shell, {"s3://bucket": bucket, "eu-west-1": s3.region})

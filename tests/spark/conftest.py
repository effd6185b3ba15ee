"""One Spark session for all tests of this layer, and a lake for each test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.distributions import BUILT
from support.spark_queries import FEW_RECORDS

import tidelog
from tidelog.log.lake import Lake
from tidelog.spark.class_archive import short_lived
from tidelog.spark.python_processes import forking_python

# `make dist` has built the distributions, and tries them with Spark, too.
collect_ignore = [] if BUILT in os.environ else ["test_distribution_spark.py"]
QUIET_AND_SMALL = {
    **FEW_RECORDS,
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": short_lived(),
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Spark and its Python workers write to stderr."""
    return tmp_path_factory.mktemp("spark") / "stderr.txt"


@pytest.fixture(scope="session")
def forked_workers() -> dict[str, str]:
    """What a JVM's environment holds so that its Python processes that plan are forked, and find tests' modules."""
    program = forking_python()
    given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    path = os.pathsep.join([str(Path(__file__).parents[1]), *given])
    return {"PYSPARK_PYTHON": program, "PYSPARK_DRIVER_PYTHON": program, "PYTHONPATH": path}


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, spark_log: Path, forked_workers: dict[str, str]
) -> Iterator[SparkSession]:
    """The session, whose processes take over stderr and the environment as they are when they start."""
    folder = tmp_path_factory.mktemp("session")
    # Derby, of which tests make databases, would log into the working folder.
    options = f"{QUIET_AND_SMALL['spark.driver.extraJavaOptions']} -Dderby.stream.error.file={folder / 'derby.log'}"
    own = os.dup(2)
    with spark_log.open("wb") as log, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", forked_workers["PYTHONPATH"])
        os.dup2(log.fileno(), 2)
        try:
            session = tidelog.spark.session(
                "tests",
                "local[2]",
                {
                    **QUIET_AND_SMALL,
                    "spark.sql.warehouse.dir": str(folder / "warehouse"),
                    "spark.sql.globalTempDatabase": "tidelog",
                    "spark.driver.extraJavaOptions": options,
                },
            )
        finally:
            os.dup2(own, 2)
            os.close(own)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _no_query_outlives_its_test(spark: SparkSession) -> Iterator[None]:
    yield
    for query in spark.streams.active:
        query.stop()


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path / "lake")) as opened:
        yield opened


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")

"""Programs that `spark-submit` starts as it stands, without --packages: each job, and one of a user's own."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.submitting import submit

from tidelog.commands.failures import STILL_WAITING
from tidelog.log.lake import Lake

JOBS = Path(__file__).resolve().parents[2] / "jobs"
PROGRAMS = sorted(p.stem for p in JOBS.glob("*.py") if '__name__ == "__main__"' in p.read_text(encoding="utf-8"))
OWN = """
import sys
import tidelog

lake = sys.argv[1]
spark = tidelog.spark.session("own")
orders = spark.createDataFrame([("ann", "tea")], "key string, value string")
orders.write.format("tidelog").options(lake=lake, topic="flights").mode("append").save()
tidelog.spark.create_view(spark, lake, "flights")
print("counted", spark.sql("SELECT count(*) FROM flights").first()[0])
"""
# A repository that has nothing, so that a fetch fails on any machine.
EMPTY_REPOSITORY = """
<ivysettings>
  <settings defaultResolver="nothing"/>
  <resolvers><ibiblio name="nothing" m2compatible="true" root="file:{folder}/"/></resolvers>
</ivysettings>
"""


@pytest.fixture(autouse=True)
def spark() -> Iterator[None]:
    """These programs have sessions of their own."""
    return


@pytest.fixture(autouse=True)
def _no_query_outlives_its_test() -> None:
    """No query runs in this process."""


def arguments(job: str, lake: str, folder: Path) -> list[str]:
    """A command line of this job that has something to do."""
    (folder / "in.csv").write_text("id,city\n1,Rome\n")
    checkpoint = ["--checkpoint", str(folder / "checkpoint")]
    out = ["--to", "delta", "--save", str(folder / "out")]
    own = {
        "export": ["--topic", "flights", *out, "--available-now", *checkpoint],
        "flight_delays": checkpoint,
        "forget": ["--topic", "flights", "--key", "UA"],
        "ingest": ["--topic", "cities", "--from", "csv", "--load", str(folder / "in.csv"), "--option", "header=true"],
    }
    if job == "mirror":
        return ["--from", lake, "--to", str(folder / "copy")]
    return ["--lake", lake, *own.get(job, [])]


@pytest.mark.parametrize("job", PROGRAMS)
def test_a_job_runs_by_a_bare_spark_submit(job: str, lake: Lake, tmp_path: Path) -> None:
    flight = '{"origin": "JFK", "carrier": "UA", "time_hour": "2013-01-01T05:00:00Z", "dep_delay": 2.0}'
    lake.create_topic("flights", config={"cleanup.policy": "compact,delete"})
    lake.topic("flights").append(pa.table({"key": ["UA", "AA"], "value": [flight, flight]}))

    code, printed, log = submit(tmp_path, JOBS / f"{job}.py", *arguments(job, lake.uri, tmp_path))

    assert code == (STILL_WAITING if job == "forget" else 0), printed + log[-3000:]
    assert "error:" not in printed
    if job == "ingest":
        assert lake.offsets("cities") == {0: (0, 1)}
    if job == "export":
        assert (tmp_path / "out" / "_delta_log").is_dir()


def test_a_program_of_ones_own_runs_by_a_bare_spark_submit(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    code, printed, log = submit(tmp_path, tmp_path / "own.py", lake.uri)
    assert code == 0, printed + log[-3000:]
    assert "counted 1" in printed
    assert not re.search(":: (resolving|loading|retrieving)|ERRORS", printed + log)


def test_jars_that_cannot_be_had_are_one_line(lake: Lake, tmp_path: Path) -> None:
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(EMPTY_REPOSITORY.format(folder=tmp_path / "maven"))
    nowhere = ("--conf", f"spark.jars.ivySettings={settings}", "--conf", f"spark.jars.ivy={tmp_path / 'ivy'}")
    lake.create_topic("flights")
    job = ("--lake", lake.uri, "--topic", "flights", "--to", "delta", "--save", str(tmp_path / "out"))

    code, printed, log = submit(tmp_path, JOBS / "export.py", *job, spark=nowhere)

    assert code == 1, printed + log[-3000:]
    assert "error: Spark has no io.delta:delta-spark" in printed
    assert "spark-submit --packages io.delta:delta-spark" in " ".join(printed.split())
    assert "Traceback" not in printed
    assert "JDBC" not in printed

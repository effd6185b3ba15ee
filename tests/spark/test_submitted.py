"""Programs that `spark-submit` starts as it stands, without --packages: each job, and one of a user's own.

They run one after another in one JVM. Of each family one is submitted by itself, too: `maintain` in test_cluster,
`ingest` and `export` with docs/spark.md in test_pages_spark.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
# Runs programs as spark-submit does: {name: [path, argument, ...]}, and says how each ended and what it printed.
IN_TURN = """
import contextlib
import io
import json
import runpy
import sys
import traceback

from pyspark.sql import SparkSession

found = {}
for name, words in json.loads(sys.argv[1]).items():
    sys.argv = words
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            runpy.run_path(words[0], run_name="__main__")
            code = 0
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
            code = -1
    found[name] = [code, printed.getvalue()]
    if (running := SparkSession.getActiveSession()) is not None:
        running.stop()  # the next one starts its own, with Delta or without
print("found:" + json.dumps(found))
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


class Submitted(NamedTuple):
    """What was submitted: each program's exit code and what it printed, and Spark's log of all."""

    folder: Path
    ended: dict[str, tuple[int, str]]
    log: str


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory, forked_workers: dict[str, str]) -> Submitted:
    """Each program after its work in a folder of its name, on a lake of its own."""
    folder = tmp_path_factory.mktemp("submitted")
    flight = '{"origin": "JFK", "carrier": "UA", "time_hour": "2013-01-01T05:00:00Z", "dep_delay": 2.0}'
    (folder / "own.py").write_text(OWN)
    (folder / "own").mkdir()
    with Lake(str(folder / "own" / "lake")) as lake:
        commands = {"own": [str(folder / "own.py"), lake.uri]}
    for job in PROGRAMS:
        (folder / job).mkdir()
        with Lake(str(folder / job / "lake")) as lake:
            lake.create_topic("flights", config={"cleanup.policy": "compact,delete"})
            lake.topic("flights").append(pa.table({"key": ["UA", "AA"], "value": [flight, flight]}))
            commands[job] = [str(JOBS / f"{job}.py"), *arguments(job, lake.uri, folder / job)]
    (folder / "in_turn.py").write_text(IN_TURN)
    code, printed, log = submit(folder, folder / "in_turn.py", json.dumps(commands), more=forked_workers)
    assert code == 0, printed + log[-3000:]
    return Submitted(folder, json.loads(printed.rpartition("found:")[2]), log)


@pytest.mark.parametrize("job", PROGRAMS)
def test_a_job_runs_by_a_bare_spark_submit(job: str, submitted: Submitted) -> None:
    folder = submitted.folder / job
    code, printed = submitted.ended[job]
    assert code == (STILL_WAITING if job == "forget" else 0), printed
    assert "error:" not in printed
    with Lake(str(folder / "lake"), create=False) as lake:
        if job == "ingest":
            assert lake.offsets("cities") == {0: (0, 1)}
        if job == "flight_delays":
            assert "delays" in lake.topics()
    if job == "export":
        assert (folder / "out" / "_delta_log").is_dir()
    if job == "mirror":
        with Lake(str(folder / "copy"), create=False, may_change_follower=True) as copy:
            assert copy.offsets("flights") == {0: (0, 2)}


def test_a_program_of_ones_own_runs_by_a_bare_spark_submit(submitted: Submitted) -> None:
    code, printed = submitted.ended["own"]
    assert code == 0, printed + submitted.log[-3000:]
    assert "counted 1" in printed
    assert not re.search(":: (resolving|loading|retrieving)|ERRORS", printed + submitted.log)


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

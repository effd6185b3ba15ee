"""deploy/'s schedules by the programs that they are for: cron starts its file's lines, and Airflow runs the DAGs.

Airflow is installed into an environment of its own. cron needs root, `cron` and bubblewrap (apt install cron
bubblewrap): it sees this machine with other files in /etc, and with what docs/schedules.md says to install.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from compat.suite import Outcome, ToolError, built, run, tried
from support.charts import ROOT
from support.schedules import CRON, DAGS, JOBS, cron_jobs
from support.waiting import eventually

from tidelog.log.lake import Lake

SUITE = "schedules"
AIRFLOW = "3.3.2"
_LIMIT_S = 600
# cron looks at its files once a minute.
_CRON_S = 180


def outcomes(built_in: Path, work: Path, only: str) -> Iterator[Outcome]:
    """Try what is asked for. Raises `ToolError`."""
    work.mkdir(parents=True)
    tests: dict[str, Callable[[], None]] = {"cron starts each line": lambda: _cron(work / "cron")}
    tests |= {
        f"Airflow runs {job}{' on Spark' if spark else ''}": lambda job=job, spark=spark: _airflow(
            built_in, work, job, spark=spark
        )
        for job in JOBS
        for spark in (False, True)
    }
    tests["Airflow says why a run failed"] = lambda: _fails(built_in, work)
    yield from tried(SUITE, tests, only)


def _lake(folder: Path) -> str:
    """A lake with something to do for each job."""
    with Lake(str(folder)) as lake:
        lake.create_topic("orders", config={"segment.ms": "1", "cleanup.policy": "compact"})
        for value in ("tea", "milk", "coffee"):
            lake.topic("orders").append(pa.table({"key": ["ann"], "value": [value]}))
    return str(folder)


def _home(folder: Path) -> Path:
    """A folder such as /opt/tidelog: an environment with tidelog and Spark, and the jobs."""
    folder.mkdir()
    for own in Path(sys.prefix).iterdir():
        (folder / own.name).symlink_to(own)
    (folder / "jobs").symlink_to(ROOT / "jobs")
    return folder


# --- Airflow -----------------------------------------------------------------------------------------------


def _installed(built_in: Path) -> Path:
    """Airflow's program."""
    folder = built_in / f"airflow-{AIRFLOW}"
    if not (folder / "installed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        built([sys.executable, "-m", "venv", "--clear", folder / "venv"], folder / "venv.log", cwd=folder)
        pip = [folder / "venv/bin/python", "-m", "pip", "install", "--quiet", "--no-input"]
        built([*pip, f"apache-airflow=={AIRFLOW}"], folder / "pip.log", cwd=folder)
        (folder / "installed").touch()
    return folder / "venv/bin/airflow"


def _run_dag(built_in: Path, work: Path, dag: str, variables: Mapping[str, str]) -> tuple[int | None, str]:
    """Run a DAG of the file, which is where Airflow looks for it; the exit code, and what Airflow said."""
    airflow, home = _installed(built_in), work / "airflow"
    environment = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        **{f"AIRFLOW_VAR_{name.upper()}": value for name, value in variables.items()},
    }
    if not (home / "dags").exists():
        (home / "dags").mkdir(parents=True)
        shutil.copy(DAGS, home / "dags")
        built([airflow, "db", "migrate"], work / "airflow-migrate.log", cwd=work, env=environment)
    log = work / f"airflow-{dag}-{len(list(work.glob('airflow-*')))}.log"
    code = run([airflow, "dags", "test", dag], log, cwd=work, env=environment, limit_s=_LIMIT_S)
    return code, log.read_text(encoding="utf-8", errors="replace")


def _airflow(built_in: Path, work: Path, job: str, *, spark: bool) -> None:
    folder = work / f"{job}{'-spark' if spark else ''}"
    folder.mkdir()
    variables = {"tidelog_lake": _lake(folder / "lake"), "tidelog_home": str(_home(folder / "home"))}
    if spark:
        variables["tidelog_spark"] = "--master local[1] --conf spark.ui.enabled=false"
    code, said = _run_dag(built_in, work, f"tidelog_{job}", variables)
    assert code == 0, said[-3000:]
    assert "state=success" in said, said[-3000:]
    report = _report(said)
    assert report["failed"] is False
    assert report["topics"][0]["compact"]["landed"] == 1, report
    assert ("purge" in report["topics"][0]) == (job == "maintain")


def _report(said: str) -> dict[str, object]:
    """The report in a task's log: the line's beginning and end are Airflow's."""
    begin = said.index('{"run"')
    report, _ = json.JSONDecoder().raw_decode(said[begin:])
    return dict(report)


def _fails(built_in: Path, work: Path) -> None:
    """Airflow tries three times, with a minute between."""
    folder = work / "fails"
    folder.mkdir()
    variables = {"tidelog_lake": str(folder / "nowhere"), "tidelog_home": str(_home(folder / "home"))}
    code, said = _run_dag(built_in, work, "tidelog_maintain", variables)
    assert code != 0, said[-3000:]
    assert said.count("Command exited with return code 1") == 3, said[-3000:]  # a try, and two more
    assert '{"error": {"type": ' in said
    assert "state=failed" in said


# --- cron --------------------------------------------------------------------------------------------------


def _cron(work: Path) -> None:
    """Have cron start each line once: with each minute in the place of its times, which the tests can't wait for."""
    for program in ("cron", "bwrap"):
        if shutil.which(program) is None:
            raise ToolError(f"'{program}' is not there: apt install cron bubblewrap")
    file = CRON.read_text()
    for job in cron_jobs().values():
        assert job.times in file
        file = file.replace(job.times, "* * * * *")
    etc, logs = work / "etc", work / "log/tidelog"
    shutil.copytree("/etc", etc, symlinks=True)
    for folder in (logs, work / "lib/tidelog", work / "crontabs", work / "run", work / "opt", etc / "tidelog"):
        folder.mkdir(parents=True)
    for path in (etc / "cron.d").iterdir():
        path.unlink()
    (etc / "cron.d/tidelog").write_text(file)
    (etc / "crontab").write_text("")
    (etc / "tidelog/environment").write_text(f"TIDELOG_LAKE={_lake(work / 'lake')}\nTIDELOG_LOG_FORMAT=json\n")
    # By another name of root's: the tests' Python may be where no other user looks.
    with (etc / "passwd").open("a") as users:
        users.write("tidelog:x:0:0::/nonexistent:/usr/sbin/nologin\n")
    with (etc / "shadow").open("a") as passwords:
        passwords.write("tidelog:*:20000:0:99999:7:::\n")
    (work / "opt/tidelog").symlink_to(sys.prefix)
    places = {"etc": "/etc", "log": "/var/log", "lib": "/var/lib", "run": "/run", "opt": "/opt"}
    binds = [word for name, place in places.items() for word in ("--bind", work / name, place)]
    box = ["bwrap", "--dev-bind", "/", "/", *binds, "--bind", work / "crontabs", "/var/spool/cron/crontabs"]
    box += ["--unshare-pid", "--proc", "/proc", "--cap-add", "ALL", "--die-with-parent", "cron", "-f"]
    with open(work / "cron.log", "wb") as log:
        cron = subprocess.Popen([str(word) for word in box], stdout=log, stderr=log)
    try:
        reports = [logs / f"{job}.jsonl" for job in JOBS]

        def all_reported() -> bool:
            assert cron.poll() is None, (work / "cron.log").read_text()
            return all(report.exists() and report.read_text().endswith("\n") for report in reports)

        eventually(all_reported, f"a report of each job that cron starts; {work} has what there is", _CRON_S)
    finally:
        cron.kill()
        cron.wait()
    for report in reports:
        assert json.loads(report.read_text().splitlines()[0])["failed"] is False, report.read_text()

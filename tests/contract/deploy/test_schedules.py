"""deploy/'s files for cron, systemd, Airflow and Kubernetes: one command each, run as these programs run them.

`make compat` has cron and Airflow run theirs.
"""

import ast
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.charts import documents
from support.forked_commands import forked_commands
from support.schedules import CRON, DAGS, JOBS, SYSTEMD, CronJob, cron_jobs, documented, unit
from support.tools import BIN, require

from tidelog.log.lake import Lake

# What cron and systemd have in a job's environment, and no more: neither HOME nor a PATH with tidelog.
OF_CRON = {"SHELL": "/bin/sh", "PATH": "/usr/bin:/bin", "LOGNAME": "tidelog"}
OF_SYSTEMD = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8"}
WAIT_S = 120


def words_of_tidelog(command: str) -> str:
    """A command line as the page has it: from the name of its program on, without what goes before or after."""
    return re.sub(r"^.*/(?=tidelog )|\s*>>.*$", "", command)


# --- one command, everywhere -------------------------------------------------------------------------------


@pytest.mark.parametrize("job", JOBS)
def test_cron_and_systemd_run_what_the_page_says(job: str) -> None:
    plain = documented()[job].plain
    assert words_of_tidelog(cron_jobs()[job].command) == plain
    assert words_of_tidelog(unit(f"tidelog-job-{job}.service")["Service"]["ExecStart"]) == plain


@pytest.mark.parametrize("job", JOBS)
def test_airflow_runs_what_the_page_says(job: str) -> None:
    """Its commands are templates, over the folder where programs are."""
    (found,) = (
        node.value
        for node in ast.parse(DAGS.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMMANDS"
    )
    filled = eval(ast.unparse(found), {"HOME": "/opt/tidelog", "SUBMIT": "spark-submit /opt/tidelog/jobs"})
    plain, on_spark = filled[job]
    assert words_of_tidelog(plain) == documented()[job].plain
    assert on_spark.removeprefix("spark-submit /opt/tidelog/") == documented()[job].on_spark


@pytest.mark.parametrize("job", JOBS)
def test_kubernetes_runs_what_the_page_says(job: str) -> None:
    """What a release's own values add, such as options and the store's, comes after."""
    plain, on_spark = (shlex.split(words) for words in documented()[job])
    seen = 0
    for name in ("s3", "outside", "connectors", "spark", "trial"):
        for one in documents(name):
            if one["metadata"].get("labels", {}).get("app.kubernetes.io/component") != job:
                continue
            if one["kind"] == "CronJob":
                (container,) = one["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
                assert ["tidelog", *container["args"][: len(plain) - 1]] == plain
                assert one["spec"]["concurrencyPolicy"] == "Forbid"
                assert one["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] > 0
                seen += 1
            elif one["kind"] == "ScheduledSparkApplication":
                application = one["spec"]["template"]
                said = [application["mainApplicationFile"], *application["arguments"][: len(on_spark) - 1]]
                assert said == [f"local:///opt/tidelog/{on_spark[0]}", *on_spark[1:]]
                assert one["spec"]["concurrencyPolicy"] == "Forbid"
                seen += 1
    assert seen


# --- systemd -----------------------------------------------------------------------------------------------


def test_systemd_takes_all_units(tmp_path: Path) -> None:
    """With the program where it is here: systemd asks for it."""
    analyze = require("systemd-analyze")
    copies = []
    for path in sorted(SYSTEMD.iterdir()):
        copies.append(tmp_path / path.name)
        copies[-1].write_text(path.read_text().replace("/opt/tidelog/bin", str(BIN)))
    done = subprocess.run(
        [analyze, "verify", "--man=no", *copies], capture_output=True, text=True, check=False, timeout=WAIT_S
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "tidelog" in line]
    assert ours == []
    copies[0].write_text("[Service]\nExecStart=/nowhere/tidelog\n")
    done = subprocess.run([analyze, "verify", "--man=no", copies[0]], capture_output=True, text=True, check=False)
    assert "/nowhere/tidelog" in done.stderr  # it would be found


@pytest.mark.parametrize("job", JOBS)
def test_a_timer_starts_the_unit_of_its_name_and_catches_up(job: str) -> None:
    timer = unit(f"tidelog-job-{job}.timer")
    assert (SYSTEMD / f"tidelog-job-{job}.service").exists()
    assert timer["Timer"]["Persistent"] == "true"
    assert timer["Install"]["WantedBy"] == "timers.target"
    analyze = require("systemd-analyze")
    subprocess.run([analyze, "calendar", timer["Timer"]["OnCalendar"]], check=True, capture_output=True)
    assert unit(f"tidelog-job-{job}.service")["Service"]["Type"] == "oneshot"


# --- as they stand -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tidelog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The command, without its imports."""
    with forked_commands(program := tmp_path_factory.mktemp("program") / "tidelog"):
        yield program


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """A lake with two small segments to merge."""
    address = str(tmp_path / "lake")
    with Lake(address) as opened:
        opened.create_topic("orders", config={"segment.ms": "1", "cleanup.policy": "compact"})
        for value in ("tea", "milk"):
            opened.topic("orders").append(pa.table({"key": ["ann"], "value": [value]}))
    return address


class Machine:
    """A folder in the place of /: what the page says to install, with `tidelog` being this one."""

    def __init__(self, folder: Path, lake: str, program: Path) -> None:
        self.folder = folder
        self._places = {
            "/opt/tidelog/bin/tidelog": str(program),
            "/etc/tidelog": str(folder),
            "/var/lib/tidelog": str(folder),
            "/var/log/tidelog": str(folder),
        }
        (folder / "environment").write_text(f"TIDELOG_LAKE={lake}\nTIDELOG_LOG_FORMAT=json\n")

    def here(self, text: str) -> str:
        for there, here in self._places.items():
            text = text.replace(there, here)
        return text

    def run_by_cron(self, job: CronJob) -> "subprocess.CompletedProcess[str]":
        return self._run(["/bin/sh", "-c", self.here(job.command)], OF_CRON)

    def run_by_systemd(self, service: "dict[str, str]") -> "subprocess.CompletedProcess[str]":
        given = (self.folder / Path(service["EnvironmentFile"]).name).read_text().split()
        words = shlex.split(self.here(service["ExecStart"]))
        return self._run(words, OF_SYSTEMD | dict(line.split("=", 1) for line in given))

    def _run(self, words: list[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
        # Where cron and systemd begin.
        return subprocess.run(
            words, cwd="/", env=environment, capture_output=True, text=True, check=False, timeout=WAIT_S
        )

    def reports(self, job: str) -> list[dict[str, object]]:
        """What cron's log has, a document a line."""
        log = self.folder / f"{job}.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path, tidelog: Path, lake: str) -> Machine:
    return Machine(tmp_path, lake, tidelog)


def test_cron_runs_each_job_and_leaves_a_line_of_its_report(tmp_path: Path, lake: str) -> None:
    machine = Machine(tmp_path, lake, BIN / "tidelog")  # by the true program
    for name, job in cron_jobs().items():
        done = machine.run_by_cron(job)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        (report,) = machine.reports(name)
        assert report["failed"] is False
        parts = report["topics"][0].keys() & {"retention", "merge", "compact", "purge"}
        assert parts == ({"compact"} if name == "compact" else {"retention", "merge", "compact", "purge"})


def test_cron_starts_no_run_while_one_goes_on(machine: Machine) -> None:
    job = cron_jobs()["maintain"]
    lock = re.search(r"flock -n -E 0 (\S+)", machine.here(job.command))[1]
    holder = subprocess.Popen(["flock", lock, "sh", "-c", "echo held; read _"], stdin=-1, stdout=-1, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        done = machine.run_by_cron(job)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert machine.reports("maintain") == []
    finally:
        holder.communicate("\n")
    assert machine.run_by_cron(job).returncode == 0
    assert len(machine.reports("maintain")) == 1


def test_cron_mails_what_a_run_that_fails_says(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "environment").write_text(f"TIDELOG_LAKE={tmp_path / 'nowhere'}\n")
    done = machine.run_by_cron(cron_jobs()["maintain"])
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "nowhere" in json.loads(line)["error"]["message"]
    assert machine.reports("maintain") == []


def test_a_part_that_fails_is_in_the_report_and_in_the_mail(machine: Machine, lake: str) -> None:
    for segment in Path(lake, "orders").glob("partition=*/*.parquet"):
        segment.write_bytes(b"no Parquet")
    done = machine.run_by_cron(cron_jobs()["compact"])
    assert done.returncode == 1
    (report,) = machine.reports("compact")
    assert report["failed"] is True
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert re.match(r"A part of maintenance failed\. orders-0, compact: .* the next run tries this", error["message"])


def test_cron_ends_a_run_that_takes_too_long(tmp_path: Path, lake: str) -> None:
    hangs = tmp_path / "tidelog"
    hangs.write_text("#!/bin/sh\nexec sleep 600\n")
    hangs.chmod(0o755)
    job = cron_jobs()["maintain"]
    soon = job._replace(command=job.command.replace("-k 60 3600", "-k 60 0.1"))
    assert soon != job
    done = Machine(tmp_path, lake, hangs).run_by_cron(soon)
    assert done.returncode == 124
    assert "sending signal TERM to command" in done.stderr


@pytest.mark.parametrize("job", JOBS)
def test_systemd_runs_each_job_and_leaves_a_line_of_its_report(machine: Machine, job: str) -> None:
    service = unit(f"tidelog-job-{job}.service")["Service"]
    assert re.fullmatch(r"\d+h", service["TimeoutStartSec"])
    done = machine.run_by_systemd(dict(service))
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["failed"] is False


def test_two_schedulers_that_start_a_job_at_once_do_no_harm(tidelog: Path, lake: str) -> None:
    """On different machines, where no lock keeps them apart."""
    with Lake(lake) as opened:
        for number in range(40):
            opened.topic("orders").append(pa.table({"key": [f"k{number % 7}"], "value": [f"{number}"]}))
        newest = newest_values(opened)
    line = [tidelog, *shlex.split(documented()["maintain"].plain)[1:], "--lake", lake]
    runs = [subprocess.Popen(line, stdout=-1, stderr=-1, text=True) for _ in range(3)]
    ended = [(*run.communicate(timeout=WAIT_S), run.returncode) for run in runs]
    assert [(err, code) for _, err, code in ended] == [("", 0)] * 3
    reports = [json.loads(out) for out, _, _ in ended]
    landed = sum(report["topics"][0]["compact"]["landed"] for report in reports)
    assert landed >= 1
    with Lake(lake) as opened:
        assert newest_values(opened) == newest
    assert subprocess.run([tidelog, "--lake", lake, "check", "--deep"], check=False, timeout=WAIT_S).returncode == 0


def newest_values(lake: Lake) -> dict[bytes, bytes]:
    return {row["key"]: row["value"] for batch in lake.topic("orders").read(0) for row in batch.to_pylist()}


def test_the_files_say_what_they_are() -> None:
    assert not re.search(r"\.", CRON.name), "cron reads no file with a dot in its name"
    assert CRON.read_text().endswith("\n"), "cron ignores a last line without an end"

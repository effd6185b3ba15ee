"""deploy/'s files for schedulers, and the page that says which commands they run."""

import configparser
import re
from typing import NamedTuple

from support.tools import ROOT

CRON = ROOT / "deploy/cron/tidelog"
SYSTEMD = ROOT / "deploy/systemd"
DAGS = ROOT / "deploy/airflow/tidelog_maintenance.py"
JOBS = ("maintain", "compact")


class Commands(NamedTuple):
    """A job's command, and the file and arguments that spark-submit takes in its place."""

    plain: str
    on_spark: str


class CronJob(NamedTuple):
    """A line of a file in /etc/cron.d."""

    times: str
    user: str
    command: str


def documented() -> dict[str, Commands]:
    """The commands of each job, by docs/schedules.md."""
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| `(.+?)` \|$", (ROOT / "docs/schedules.md").read_text(), re.MULTILINE)
    return {name: Commands(plain, on_spark) for name, plain, on_spark in rows if name in JOBS}


def cron_jobs() -> dict[str, CronJob]:
    """The lines of cron's file that start jobs, by the names of their logs."""
    lines = re.findall(r"^((?:\S+ ){4}\S+)\s+(\w+)\s+(.+)$", CRON.read_text(encoding="utf-8"), re.MULTILINE)
    jobs = [CronJob(*line) for line in lines if not line[0].startswith("#")]
    return {re.search(r"(\w+)\.jsonl$", job.command)[1]: job for job in jobs}  # type: ignore[index]


def unit(name: str) -> configparser.ConfigParser:
    """A unit of systemd, whose keys have capitals."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((SYSTEMD / name).read_text(encoding="utf-8"))
    return parser

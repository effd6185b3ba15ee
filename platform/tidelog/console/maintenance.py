"""Maintenance, the checker and the doctor: what is due or wrong, and work that goes on after its request's answer."""

import logging
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from tidelog.check.lake import check_lake
from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.console import Console
from tidelog.console.base.errors import ConsoleError, bad
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import unknown_topic
from tidelog.log.storage.port import Storage
from tidelog.operations.health import gather
from tidelog.operations.health_rules import examined
from tidelog.operations.maintenance import LakeMaintenance
from tidelog.retention.report import ReportRow

logger = logging.getLogger("tidelog.console")
# How long the console's end waits for work, which may be killed anywhere.
_PATIENCE_S: Final = 10.0
# How long what is due counts: to plan looks at every topic.
_DUE_S: Final = 60.0
# How long the doctor's findings count.
_FOUND_S: Final = 10.0
_MOST_FINDINGS: Final = 1_000


class Jobs:
    """Runs one job after another, in a thread. All methods may be called from many threads."""

    def __init__(self, clock: Clock, ids: Ids, what: str) -> None:
        self._clock = clock
        self._ids = ids
        self._what = what
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._now: dict[str, Any] | None = None

    def close(self) -> None:
        """Wait for the job that runs, for a while."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(_PATIENCE_S)

    def start(self, asked: dict[str, Any], work: Callable[[], Any]) -> dict[str, Any]:
        """Have a job run; `asked`: what its state says of it besides. Raises `ConsoleError` 409 while one runs."""
        with self._lock:
            if self._now is not None and self._now["state"] == "running":
                raise ConsoleError(409, f"{self._what} runs already. Wait until it has ended.")
            job = {"id": self._ids.new(), **asked, "state": "running", "began_ms": self._clock.now_ms()}
            self._now = job | {"ended_ms": None, "result": None, "error": None}
            self._thread = threading.Thread(target=self._run, args=(self._now, work), name="console-job", daemon=True)
            self._thread.start()
            return dict(self._now)

    def newest(self) -> dict[str, Any] | None:
        """The job that runs, or ran last; None before the first."""
        with self._lock:
            return None if self._now is None else dict(self._now)

    def _run(self, job: dict[str, Any], work: Callable[[], Any]) -> None:
        try:
            ended = {"state": "done", "result": work()}
        except TidelogError as error:
            ended = {"state": "failed", "error": str(error)}
        except Exception:
            logger.exception("%s failed: this is a bug.", self._what)
            ended = {"state": "failed", "error": "Internal error: see the console's log."}
        with self._lock:
            job |= {**ended, "ended_ms": self._clock.now_ms()}


class ConsoleMaintenance(Jobs):
    """The run that was asked for here, and what is due."""

    def __init__(self, console: Console) -> None:
        super().__init__(console.lake.clock, console.lake.ids, "Maintenance")
        self._console = console
        self._planning = threading.Lock()
        self._due: list[dict[str, str]] = []
        self._due_s = float("-inf")

    def run(self, topic: str | None) -> dict[str, Any]:
        """Have a run begin. Raises `ConsoleError` 409."""
        return self.start({"topic": topic}, lambda: self._maintained(topic))

    def _maintained(self, topic: str | None) -> dict[str, Any]:
        try:
            report = LakeMaintenance(self._console.lake).run(topics=None if topic is None else [topic])
        finally:  # what it did before it failed shows, too
            with self._planning:
                self._due_s = float("-inf")
            self._console.invalidate()
        return {"failed": report.failed, "rows": [_row(row) for row in report.rows()]}

    def due(self) -> list[dict[str, str]]:
        """What retention, merges and compaction would do now, or a minute ago. Raises as `maintain` does."""
        with self._planning:
            now_s = self._console.lake.clock.elapsed_s()
            if now_s - self._due_s > _DUE_S:
                self._due = [_row(row) for row in LakeMaintenance(self._console.lake).due()]
                self._due_s = now_s
            return self._due


def _row(row: ReportRow) -> dict[str, str]:
    return {"topic": row.topic, "part": row.part, "what": row.what}


def maintenance(call: ConsoleCall) -> Any:
    """The newest runs, the last one first, and what is due of the topics that the client sees."""
    due = call.console.part(ConsoleMaintenance).due()
    return {
        "runs": [asdict(run) for run in call.console.snapshot().runs],
        "due": [row for row in due if call.rights.sees_topic(row["topic"])],
    }


def run_now(call: ConsoleCall) -> Any:
    """Begin a run over a topic, or all."""
    topic = call.fields("topic").get("topic")
    if not (topic is None or isinstance(topic, str)):
        raise bad("'topic' must be a text, or null for all topics.")
    if topic is not None and topic not in call.console.snapshot().topics:
        raise unknown_topic(topic)
    return call.console.part(ConsoleMaintenance).run(topic)


def newest_run(call: ConsoleCall) -> Any:
    """The run that was asked for here: its state, and what it did."""
    return call.console.part(ConsoleMaintenance).newest()


class ConsoleCheck(Jobs):
    """The check that was asked for here."""

    def __init__(self, console: Console) -> None:
        super().__init__(console.lake.clock, console.lake.ids, "A check")


class ConsoleDoctor:
    """The doctor's findings, looked for when they are asked for."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._found: list[dict[str, Any]] = []
        self._found_s = float("-inf")

    def close(self) -> None:
        """Nothing."""

    def findings(self) -> list[dict[str, Any]]:
        """What is wrong, errors first. The store is tried, unless nothing may be changed."""
        with self._lock:
            lake = self._console.lake
            now_s = lake.clock.elapsed_s()
            if now_s - self._found_s > _FOUND_S:

                def opened(storage: Storage) -> Lake:
                    return Lake(lake.uri, False, storage=storage, clock=lake.clock)

                tried = not self._console.settings.read_only
                facts = gather(lake.uri, lambda: lake.storage, opened, lake.clock, lake.ids, try_store=tried)
                self._found = [asdict(diagnosis) for diagnosis in examined(facts)]
                self._found_s = now_s
            return self._found


def doctor(call: ConsoleCall) -> Any:
    """What is wrong with the lake, and what to do."""
    return {"findings": call.console.part(ConsoleDoctor).findings()}


def check(call: ConsoleCall) -> Any:
    """The check that runs or ran last, null before the first; `topic`: only its findings."""
    run, topic = call.console.part(ConsoleCheck).newest(), call.text("topic")
    if run is None or not run["result"] or not topic:
        return run
    result = run["result"]
    return run | {"result": result | {"findings": [one for one in result["findings"] if one["topic"] == topic]}}


def run_check(call: ConsoleCall) -> Any:
    """Begin a check of a topic, or all; `deep`: of every record, too. It changes nothing."""
    body = call.fields("topic", "deep")
    topic, deep = body.get("topic"), body.get("deep", False)
    if not (topic is None or isinstance(topic, str)) or not isinstance(deep, bool):
        raise bad("'topic' must be a text, or null for all topics, and 'deep' true or false.")
    lake = call.console.lake

    def work() -> dict[str, Any]:
        report = check_lake(lake, None if topic is None else [topic], deep).to_dict()
        return report | {"findings": report["findings"][:_MOST_FINDINGS]}

    return call.console.part(ConsoleCheck).start({"topic": topic, "deep": deep}, work)

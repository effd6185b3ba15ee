"""Maintenance: the newest runs, what is due, and a run now."""

import threading
from dataclasses import asdict
from typing import Any, Final

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.console import Console
from tidelog.console.base.errors import bad
from tidelog.console.upkeep.jobs import Jobs
from tidelog.log.rules.topics import unknown_topic
from tidelog.operations.maintenance import LakeMaintenance
from tidelog.retention.report import ReportRow

# How long what is due counts: to plan looks at every topic.
_DUE_S: Final = 60.0


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
    found = call.console.part(ConsoleMaintenance).due()
    return {
        "runs": [asdict(run) for run in call.console.snapshot().runs],
        "due": [row for row in found if call.rights.sees_topic(row["topic"])],
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

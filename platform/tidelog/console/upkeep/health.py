"""Whether the lake is well: the checker's last result, and the doctor's findings."""

import threading
from dataclasses import asdict
from typing import Any, Final

from tidelog.check.lake import check_lake
from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.console import Console
from tidelog.console.base.errors import bad
from tidelog.console.upkeep.jobs import Jobs
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Storage
from tidelog.operations.health import gather
from tidelog.operations.health_rules import examined

# How long the doctor's findings count.
_FOUND_S: Final = 10.0
_MOST_FINDINGS: Final = 1_000


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
    found, topic = call.console.part(ConsoleCheck).newest(), call.text("topic")
    if found is None or not found["result"] or not topic:
        return found
    result = found["result"]
    return found | {"result": result | {"findings": [one for one in result["findings"] if one["topic"] == topic]}}


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

"""What a process that stays up does from its start to its end."""

import json
import logging
import urllib.error
import urllib.request
from dataclasses import dataclass

import pytest

from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.operations.metric_families import MetricFamily
from tidelog.server.process.logs import LogFormat, LogLevel
from tidelog.server.process.serving import Ready, Service, serve
from tidelog.server.process.stopping import Stop

ANYWHERE = "127.0.0.1:0"


@dataclass(frozen=True)
class Speaking:
    as_json: bool = False
    log_format: LogFormat | None = None
    log_level: LogLevel | None = None


class Steps(Service):
    """Notes what is asked of it; `fails`: at which step."""

    def __init__(self, fails=""):
        self.steps = []
        self.said = None
        self._fails = fails

    def _step(self, name):
        self.steps.append(name)
        if name == self._fails:
            raise TidelogError(f"no {name}")

    def start(self):
        self._step("start")

    def ready(self, metrics):
        self._step("ready")
        self.said = metrics
        return Ready(f"It is ready with {metrics}", {"metrics": metrics})

    def run(self, stop):
        self._step("run")
        logging.getLogger("tidelog.steps").info("It runs")
        stop.ask("it is enough")
        super().run(stop)

    def stop(self):
        self._step("stop")

    def metrics(self):
        return [MetricFamily.of("steps", "Steps.", len(self.steps))]


def opened():
    lake = Lake("memory://served")
    lake.ensure_lake()
    return lake


def served(service, speech=None, **more):
    with Stop() as stop:
        return serve(speech or Speaking(), opened, lambda *_: service, stop=stop, **more)


def test_a_service_starts_says_so_runs_and_stops(capsys):
    service = Steps()
    assert served(service, part="1").reason == "it is enough"
    assert service.steps == ["start", "ready", "run", "stop"]
    said = capsys.readouterr()
    assert said.out == "It is ready with None\n"
    assert said.err.endswith(" INFO part=1 It runs\n")


def test_it_says_so_in_json_and_its_log_too(capsys):
    served(Steps(), Speaking(as_json=True, log_format="json"))
    said = capsys.readouterr()
    assert json.loads(said.out) == {"metrics": None}
    assert json.loads(said.err)["message"] == "It runs"


def test_others_may_take_what_it_says(capsys):
    taken = []
    served(Steps(), say=taken.append)
    assert [ready.document for ready in taken] == [{"metrics": None}]
    assert capsys.readouterr().out == ""


def test_it_may_have_the_log_of_other_commands(capsys):
    served(Steps(), log=False)
    assert "It runs" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fails", "steps"),
    [
        ("start", ["start", "stop"]),
        ("ready", ["start", "ready", "stop"]),
        ("run", ["start", "ready", "run", "stop"]),
    ],
)
def test_what_fails_stops_it(fails, steps):
    service = Steps(fails)
    with pytest.raises(TidelogError, match=f"no {fails}"):
        served(service)
    assert service.steps == steps


def answer(address, path):
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Draining(Steps):
    """Asks its own metrics and health while it runs, and while it is stopped."""

    why = None

    def __init__(self):
        super().__init__()
        self.answers = []

    def _step(self, name):
        super()._step(name)
        if self.said is not None and name in ("run", "stop"):
            self.why = "It stops." if name == "stop" else None
            self.answers += [answer(self.said, "/metrics"), answer(self.said, "/readyz")]

    def why_not_ready(self):
        return self.why


def test_metrics_and_health_are_served_until_it_has_stopped():
    service = Draining()
    served(service, metrics=ANYWHERE)
    metrics, ready, metrics_at_the_end, not_ready = service.answers
    assert "\nsteps 3\n" in metrics[1]
    assert "\nsteps 4\n" in metrics_at_the_end[1]
    assert ready[0] == 200
    assert not_ready == (503, '{"status":"not ready","reason":"It stops."}')
    with pytest.raises(urllib.error.URLError):
        answer(service.said, "/metrics")


def test_a_port_for_metrics_that_is_taken_stops_it():
    first, second = Steps(), Steps()
    first.run = lambda stop: served(second, metrics=first.said)
    with pytest.raises(TidelogError, match="another process has port"):
        served(first, metrics=ANYWHERE)
    assert (first.steps, second.steps) == (["start", "ready", "stop"], ["start", "stop"])

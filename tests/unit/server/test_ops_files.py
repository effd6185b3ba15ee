"""docs/ops and deploy/systemd: rules, dashboards and units name metrics, commands and options that are there."""

import itertools
import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from support.cli_calls import done
from support.logs import FakeClock
from support.prometheus import tried_rules

from tidelog.broker.access.throttling import Throttling
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.base.settings import Bounds, QuotaSettings
from tidelog.broker.server.connections import Connections
from tidelog.broker.server.metrics import broker_metrics
from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.log.storage.counting import CountingStorage
from tidelog.retention.maintenance import maintain
from tidelog.server.process.lake_metrics import LakeMetrics
from tidelog.server.process.metrics_listener import store_metrics
from tidelog.server.telemetry.process_metrics import ProcessMetrics
from tidelog.server.telemetry.sending import CollectorOutcomes

ROOT = Path(__file__).parents[3]
OPS = ROOT / "docs" / "ops"
RULES = yaml.safe_load((OPS / "prometheus.rules.yml").read_text())["groups"][0]["rules"]
DASHBOARDS = {path.name: json.loads(path.read_text()) for path in sorted(OPS.glob("grafana-*.json"))}
SYSTEMD = ROOT / "deploy" / "systemd"
# Units of processes that stay up; tests/contract/deploy has those of timers.
UNITS = sorted(path.name for path in SYSTEMD.glob("*.service") if not path.name.startswith("tidelog-job-"))
# What PromQL itself has, and Prometheus adds to what it scrapes.
WORDS = frozenset(
    re.findall(
        r"\w+",
        "sum by on and or absent rate increase deriv predict_linear label_values up job instance topic group partition"
        " consumergroup kind max instance request quantile error outcome",
    )
)


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    """{name as Prometheus stores it: names of its labels} of a lake that has one of everything."""
    with Lake(tmp_path_factory.mktemp("ops") / "lake", clock=FakeClock()) as lake:
        lake.create_topic("orders", 1)
        lake.topic("orders").append([{"value": "1"}])
        lake.log("orders").upkeep.checkpoint(1)
        LoggedPositions(GroupLog(lake)).publish("billing", {"orders": {0: 0}})
        maintain(lake)
        found = {}
        counting = CountingStorage(lake.storage)
        counting.list_folders("")
        for family in (*LakeMetrics(lake).read(), *store_metrics(counting), *broker_families()):
            name = f"{family.name}_total" if family.is_counter else family.name
            found[name] = {label for labels, _ in family.samples for label in labels}
        return found | {"up": {"job", "instance"}}


def broker_families():
    """Of a broker that has answered a request, and of a process that has sent telemetry."""
    meter, clock = BrokerMeter(), FakeClock()
    meter.api("PRODUCE").requests[9] += 1
    meter.api("PRODUCE").errors[0] += 1
    meter.api("PRODUCE").queued.add(0.1, clock.elapsed_s())
    meter.api("PRODUCE").total.add(0.1, clock.elapsed_s())
    meter.topic("orders").messages_in += 1
    connections = Connections({}, clock, Bounds(), meter, Throttling(dict, clock, QuotaSettings()))
    yield from broker_metrics(meter, connections, lambda: True)
    yield from CollectorOutcomes("http://collector").metrics()
    yield from ProcessMetrics().read()


def names_in(query):
    """Metrics, and labels that are matched, joined or grouped by, in a query."""
    bare = re.sub(r'"[^"]*"|\[[^\]]*\]', "", query)
    return {word for word in re.findall(r"[a-z_][a-z0-9_]*", bare) if not word.isdigit()} - WORDS


def queries():
    yield from ((rule["alert"], rule["expr"]) for rule in RULES)
    for file, board in DASHBOARDS.items():
        for panel in board["panels"]:
            yield from ((f"{file}: {panel['title']}", target["expr"]) for target in panel["targets"])
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                yield f"{file}: ${variable['name']}", variable["query"]


@pytest.mark.parametrize(("where", "query"), queries())
def test_a_query_names_metrics_that_are_there(families, where, query):
    unknown = names_in(query) - families.keys()
    assert unknown == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alarm_says_what_is_wrong_and_what_to_do(families, rule):
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description"}
    labels = families["up"].union(*(families[name] for name in names_in(rule["expr"])))
    text = "".join(rule["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels
    for command in re.findall(r"'tidelog ([a-z]+(?: [a-z]+)?)", text):
        done(*command.split(), "--help")


def test_each_alarm_is_tried_and_has_a_line_for_the_operator():
    tried = (OPS / "prometheus.rules.test.yml").read_text()
    lines = (ROOT / "docs" / "operations.md").read_text().splitlines()
    for rule in RULES:
        assert f'alertname="{rule["alert"]}", alertstate="firing"' in tried
        assert [line for line in lines if line.startswith(f"| `{rule['alert']}` |")], rule["alert"]


def test_alarms_go_off_as_they_should():
    tried_rules(OPS / "prometheus.rules.test.yml")


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_has_its_panels_beside_one_another(name):
    board = DASHBOARDS[name]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in board["panels"]}) == len(places)
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    used = {name for query in asked for name in re.findall(r"\$(\w+)", query)}
    assert used <= {variable["name"] for variable in board["templating"]["list"]}


def options_of(words):
    """The options of a command line, and what its help names."""
    given = {word for word in words if word.startswith("--")}
    command = itertools.takewhile(lambda word: not word.startswith("--"), words)
    return given, done(*command, "--help", env={"COLUMNS": "200"}).stdout


def test_each_process_that_serves_for_long_has_a_unit():
    processes = ("broker", "connect", "console", "maintain", "metrics", "mirror", "registry")
    assert [f"tidelog-{process}.service" for process in processes] == UNITS


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_starts_a_command_that_is_there(unit):
    lines = (SYSTEMD / unit).read_text().splitlines()
    assert [line for line in lines if re.fullmatch(r"\[\w+\]", line)] == ["[Unit]", "[Service]", "[Install]"]
    assert all(re.fullmatch(r"#.*|\[\w+\]|[A-Z]\w+=.+|", line) for line in lines)
    (start,) = (line for line in lines if line.startswith("ExecStart="))
    program, *words = shlex.split(start.partition("=")[2])
    assert program == "/opt/tidelog/bin/tidelog"
    given, said = options_of(words)
    assert all(option in said for option in given)

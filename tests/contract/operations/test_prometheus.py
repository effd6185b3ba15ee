"""A real Prometheus scrapes `tidelog metrics` on a lake with known contents; docs/ops' dashboards and rules ask it."""

import json
import re
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, Producer
from support.broker_processes import broker_command
from support.cli_calls import lines_of, process
from support.logs import FakeClock
from support.otlp_receiver import otlp_receiver
from support.prometheus import checked_rules, running_prometheus
from support.small_s3 import small_s3
from support.waiting import PATIENCE_S, eventually

from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.retention.maintenance import maintain

OPS = Path(__file__).parents[3] / "docs" / "ops"
RULES = OPS / "prometheus.rules.yml"
ALARMS = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
DASHBOARDS = {path.name: json.loads(path.read_text()) for path in sorted(OPS.glob("grafana-*.json"))}
PANELS = [
    pytest.param(target["expr"], id=f"{name}: {panel['title']}, {target['refId']}")
    for name, board in DASHBOARDS.items()
    for panel in board["panels"]
    for target in panel["targets"]
]
VARIABLES = [
    variable["query"]
    for board in DASHBOARDS.values()
    for variable in board["templating"]["list"]
    if variable["type"] == "query"
]
# How long ago the first records were appended.
HOURS_AGO_MS = 2 * 3_600_000


def values(count, partition):
    return [{"value": str(number), "partition": partition} for number in range(count)]


@contextmanager
def metrics_of(lake, *options):
    """`tidelog metrics --listener` as a process; HOST:PORT."""
    words = ["--lake", lake, "--format", "json", "metrics", "--listener", "127.0.0.1:0", *options]
    with process(*words) as running:
        try:
            line = next(lines_of(running.stdout))
            yield re.fullmatch(r"http://(.*)/metrics", json.loads(line)["url"])[1]
        finally:
            running.send_signal(signal.SIGTERM)
            running.communicate()


@contextmanager
def used_broker(lake, receiver):
    """A broker over a lake of its own, which clients have used; HOST:PORT of its metrics."""
    listeners = ("--listener", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--otlp", receiver.url)
    with broker_command(lake, *listeners) as command:
        ready = command.ready()
        client = {"bootstrap.servers": ready["listener"]}
        producer = Producer(client)
        producer.produce("requests", b"1")
        assert producer.flush(PATIENCE_S) == 0
        producer.list_topics("nowhere-at-all", timeout=PATIENCE_S)
        consumer = Consumer({**client, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["requests"])
        assert consumer.poll(PATIENCE_S).value() == b"1"
        consumer.close()
        yield ready["metrics"]


class _World:
    """A lake with known contents, and Prometheus, which scrapes it."""

    def __init__(self, lake, prometheus, appended_ms):
        self.lake = lake
        self.prometheus = prometheus
        self.appended_ms = appended_ms

    def number(self, metric, **labels):
        """The value of a series that a scrape has brought."""
        chosen = ",".join(f'{name}="{value}"' for name, value in labels.items())
        expression = f"{metric}{{{chosen}}}"
        found = eventually(lambda: self.prometheus.query(expression), f"Prometheus has {expression}")
        assert len(found) == 1, found
        return found[0][1]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    clock = FakeClock(int(time.time() * 1000) - HOURS_AGO_MS)
    with Lake(folder / "lake", clock=clock) as lake, small_s3() as store:
        lake.create_topic("orders", 2)
        lake.topic("orders").append(values(7, 0) + values(5, 1))
        lake.topic("orders").append(values(3, 1))
        lake.delete_records("orders", {0: 2})
        lake.create_topic("payments", 1)
        lake.topic("payments").append(values(4, 0))
        positions = LoggedPositions(GroupLog(lake))
        positions.publish("billing", {"orders": {0: 7, 1: 6}, "payments": {0: 0}})
        positions.publish("done", {"payments": {0: 4}})
        maintain(lake)
        lake.log("orders").upkeep.checkpoint(1)
        with Lake("s3://bucket/lake", options=store.options) as remote:
            remote.create_topic("remote", 1)
        options = [word for pair in store.options.items() for word in ("--store-option", "=".join(pair))]
        with (
            metrics_of(str(folder / "lake"), "--cluster", "prod") as local,
            metrics_of("s3://bucket/lake", "--age", "0", *options) as shared,
            otlp_receiver() as receiver,
            used_broker(folder / "brokers", receiver) as broker,
            running_prometheus(
                folder / "server",
                {"tidelog": [local], "tidelog-s3": [shared], "tidelog-brokers": [broker]},
                RULES,
            ) as server,
        ):
            yield _World(lake, server, clock.now_ms())


def test_partitions_are_as_they_were_written(world):
    for partition, start, end in ((0, 2, 7), (1, 0, 8)):
        place = {"topic": "orders", "partition": partition}
        assert world.number("kafka_topic_partition_current_offset", **place) == end
        assert world.number("kafka_topic_partition_oldest_offset", **place) == start
        assert world.number("kafka_partition_latest_offset", cluster_name="prod", **place) == end
        assert world.number("kafka_partition_earliest_offset", cluster_name="prod", **place) == start
    assert world.number("kafka_topic_partitions", topic="orders") == 2
    assert world.number("tidelog_topic_records_total", topic="orders") == 15
    assert world.number("tidelog_lake_topics", job="tidelog") == 2


def test_lag_in_records_is_what_a_group_has_yet_to_read(world):
    for topic, partition, offset, behind in (("orders", 0, 7, 0), ("orders", 1, 6, 2), ("payments", 0, 0, 4)):
        place = {"topic": topic, "partition": partition}
        assert world.number("kafka_consumergroup_current_offset", consumergroup="billing", **place) == offset
        assert world.number("kafka_consumergroup_lag", consumergroup="billing", **place) == behind
        assert world.number("kafka_consumergroup_group_lag", group="billing", **place) == behind
    assert world.number("kafka_consumergroup_group_sum_lag", group="billing") == 6
    assert world.number("kafka_consumergroup_group_max_lag", group="billing") == 4
    assert world.number("kafka_consumergroup_group_sum_lag", group="done") == 0


def test_lag_in_seconds_is_the_age_of_the_oldest_record_not_committed(world):
    place = {"group": "billing", "topic": "orders"}
    assert world.number("kafka_consumergroup_group_lag_seconds", partition=0, **place) == 0
    late = world.number("kafka_consumergroup_group_lag_seconds", partition=1, **place)
    assert HOURS_AGO_MS / 1000 - 1 <= late <= time.time() - world.appended_ms / 1000 + 1
    assert world.number("kafka_consumergroup_group_max_lag_seconds", group="done") == 0


def test_what_is_appended_and_committed_is_seen(world):
    world.lake.create_topic("new", 1)
    world.lake.topic("new").append(values(10, 0))
    at, lag = 'kafka_topic_partition_current_offset{topic="new"}', 'kafka_consumergroup_lag{topic="new"}'
    eventually(lambda: world.prometheus.number(at) == 10, "ten records")
    LoggedPositions(GroupLog(world.lake)).publish("later", {"new": {0: 4}})
    eventually(lambda: world.prometheus.number(lag) == 6, "a lag of six")
    LoggedPositions(GroupLog(world.lake)).publish("later", {"new": {0: 10}})
    eventually(lambda: world.prometheus.number(lag) == 0, "no lag")


def test_requests_to_an_object_store_are_counted(world):
    counted = 'tidelog_store_requests_total{job="tidelog-s3",kind="list"}'
    first = world.number("tidelog_store_requests_total", job="tidelog-s3", kind="list")
    eventually(lambda: world.prometheus.number(counted) > first, "more requests with each look")


@pytest.mark.parametrize("expression", PANELS)
def test_a_panel_has_data(world, expression):
    asked = re.sub(r"\$\w+", ".*", expression)
    eventually(lambda: world.prometheus.query(asked), f"data of {asked}")


@pytest.mark.parametrize("query", VARIABLES)
def test_a_variable_has_values(world, query):
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", query).groups()
    eventually(lambda: world.prometheus.label_values(metric, label), f"values of {query}")


@pytest.mark.parametrize("alarm", ALARMS, ids=lambda alarm: alarm["alert"])
def test_an_alarm_asks_for_metrics_that_are_there(world, alarm):
    for metric in set(re.findall(r"\b(?:tidelog|kafka)_\w+|\bup\b", alarm["expr"])):
        eventually(lambda metric=metric: world.prometheus.query(metric), f"{metric} is there")


def test_prometheus_takes_every_rule_and_evaluates_it(world):
    assert f"{len(ALARMS)} rules found" in checked_rules(RULES)

    def evaluated():
        rules = world.prometheus.rules()
        return rules if all(rule["health"] != "unknown" for rule in rules) else None

    rules = eventually(evaluated, "all rules are evaluated")
    assert {rule["name"]: rule["health"] for rule in rules} == {alarm["alert"]: "ok" for alarm in ALARMS}


def test_alarms_go_off_for_what_is_wrong_and_for_nothing_else(world):
    # The maintenance of two hours ago was refused by the store's clock, and so failed.
    wrong = {"TidelogGroupWithoutMembers", "TidelogNoMaintenance", "TidelogMaintenanceFails"}

    def alarmed():
        return {rule["name"] for rule in world.prometheus.rules() if rule["state"] in {"pending", "firing"}}

    eventually(lambda: wrong <= alarmed(), "all three alarms")
    # The disk is this machine's, which other tests fill and empty.
    assert alarmed() <= wrong | {"TidelogLagGrows", "TidelogDiskFillsUp"}

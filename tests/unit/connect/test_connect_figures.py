"""What tasks count, by Connect's names, and Prometheus's view of it."""

from support.connect_plugins import COLLECTOR, COUNTER
from support.waiting import eventually
from test_connect_api import CONVERTERS, Rest

from tidelog.connect.api.rest_server import worker_metrics
from tidelog.connect.runtime.task_figures import WINDOW_S, TaskFigure, TaskFigures
from tidelog.server.connections import HttpCounts


class Clock:
    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


def test_a_rate_is_the_mean_of_the_last_minute():
    clock = Clock()
    figures = TaskFigures(clock)
    assert figures.rate(TaskFigure.POLLED) == 0
    for _ in range(10):
        clock.now_s += 1
        figures.add(TaskFigure.POLLED, 30)
        figures.add(TaskFigure.WRITTEN)
    assert figures.rate(TaskFigure.POLLED) == 30
    assert figures.rate(TaskFigure.WRITTEN) == 1
    clock.now_s += 20
    assert figures.rate(TaskFigure.POLLED) == 10
    clock.now_s += WINDOW_S - 25  # half of them are older than a minute
    assert figures.rate(TaskFigure.POLLED) == 150 / WINDOW_S
    clock.now_s += WINDOW_S
    assert figures.rate(TaskFigure.POLLED) == 0
    assert figures.total(TaskFigure.POLLED) == 300


def test_a_rate_keeps_no_more_than_the_window_however_much_is_counted():
    clock = Clock()
    figures = TaskFigures(clock)
    for _ in range(10_000):
        clock.now_s += 0.1
        figures.add(TaskFigure.SENT)
    assert len(figures._buckets) <= WINDOW_S + 1
    assert 9.5 < figures.rate(TaskFigure.SENT) <= 10.1


def test_a_worker_shows_what_its_tasks_count(tmp_path):
    rest = Rest(tmp_path, started=True)

    def value(name, connector):
        families = worker_metrics(rest.worker, rest.app, HttpCounts())
        family = next((one for one in families if one.name == name.removesuffix("_total")), None)
        samples = [] if family is None else family.samples
        return next((value for labels, value in samples if labels == {"connector": connector, "task": "0"}), None)

    try:
        rest.lake.create_topic("t", 1)
        rest.lake.create_topic("dead", 1)
        rest.ok(
            "PUT", "/connectors/in/config", {"connector.class": COUNTER, "topic": "t", "most": "20", **CONVERTERS}, 201
        )
        eventually(lambda: value("kafka_connect_source_task_metrics_source_record_write_total", "in") == 20, "written")
        rest.lake.topic("t").append([{"value": b"not 8 bytes"}])
        sink = {
            "connector.class": COLLECTOR, "topics": "t", "file": str(tmp_path / "out"), "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": "dead", **CONVERTERS,
        }  # fmt: skip
        rest.ok("PUT", "/connectors/out/config", sink, 201)
        eventually(lambda: value("kafka_connect_sink_task_metrics_sink_record_read_total", "out") == 21, "read")
        eventually(lambda: value("kafka_connect_sink_task_metrics_sink_record_send_total", "out") == 20, "sent")
        eventually(lambda: value("kafka_connect_sink_task_metrics_offset_commit_completion_total", "out"), "committed")
        assert value("kafka_connect_source_task_metrics_source_record_poll_total", "in") == 20
        assert value("kafka_connect_source_task_metrics_source_record_poll_rate", "in") > 0
        assert value("kafka_connect_sink_task_metrics_sink_record_send_rate", "out") > 0
        assert value("kafka_connect_task_error_metrics_total_records_skipped", "out") == 1
        assert value("kafka_connect_task_error_metrics_total_record_failures", "out") == 1
        assert value("kafka_connect_task_error_metrics_deadletterqueue_produce_requests", "out") == 1
        assert value("kafka_connect_task_error_metrics_total_records_skipped", "in") == 0
        assert value("kafka_connect_sink_task_metrics_sink_record_read_total", "in") is None
    finally:
        rest.close()

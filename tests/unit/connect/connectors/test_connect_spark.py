"""Supervised applications: started again with backoff, a limited number at a time, stopped with their task."""

import sys
from pathlib import Path

import pytest
from support.connect_tasks import ApplicationContext
from support.waiting import eventually

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.connectors.spark.application import SPARK_KEYS, SparkApplication, SparkApplicationTask
from tidelog.connect.connectors.spark.delta_sink import DeltaJob, SparkDeltaSink, SparkDeltaTask
from tidelog.connect.connectors.spark.submission import RestartRule, SparkSlots, submission
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.connect.spi.applications import ApplicationPhase
from tidelog.log.lake import Lake


class Clock:
    seconds = 0.0

    def elapsed_s(self):
        return self.seconds


def test_restarts_wait_longer_with_each_failure_in_a_row():
    rule = RestartRule(1.0, 5.0, -1)
    assert [rule.failed(0.1) for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert rule.failed(600.0) == 1.0  # it had run for a while
    assert [RestartRule(0.0, 0.0, most).failed(0) for most in (0, 1)] == [None, 0.0]


def test_slots_are_given_back():
    slots = SparkSlots()
    assert [slots.take(2) for _ in range(3)] == [True, True, False]
    slots.give()
    assert slots.take(2)
    assert not slots.take(1)


def program(tmp_path, text):
    path = tmp_path / "app.py"
    path.write_text(text)
    return {"spark.application": str(path), "spark.submit": sys.executable, "restart.backoff.ms": "1000"}


def task_of(config, slots=None, clock=None, **worker):
    task = SparkApplicationTask(clock or Clock(), slots or SparkSlots())
    task.start(config, ApplicationContext(worker))
    return task


def ended(task):
    """Poll until the task has seen its application end."""
    task.look()
    assert task._process is not None
    eventually(lambda: task.look() and task._process is None, "the application has ended")


def test_an_application_that_ends_well_is_not_started_again(tmp_path):
    config = program(tmp_path, "import sys; open(sys.argv[1], 'a').write('ran ' + sys.argv[2])")
    out = tmp_path / "out put"
    slots = SparkSlots()
    task = task_of(config | {"spark.application.args": f"'{out}' x"}, slots)
    ended(task)
    task.look()
    assert (out.read_text(), task._process) == ("ran x", None)
    assert task.look() == (ApplicationPhase.ENDED, None)
    assert slots.take(1)


def test_an_application_that_fails_is_started_again_after_a_while_and_then_given_up(tmp_path):
    clock = Clock()
    config = program(tmp_path, "print('the reason'); raise SystemExit(3)") | {"max.restarts": "1"}
    task = task_of(config, clock=clock)
    ended(task)
    phase, trace = task.look()
    assert phase is ApplicationPhase.RESTARTING
    assert "the reason" in trace
    assert task._process is None  # not before the backoff
    clock.seconds = 1.0
    with pytest.raises(ConnectError, match=r"ended with 3 after 0 s, 2 times in a row[\s\S]*the reason"):
        ended(task)
    task.stop()


def test_a_worker_runs_two_applications_unless_its_file_says_otherwise(tmp_path):
    ready = [tmp_path / f"ready-{number}" for number in range(3)]
    slots = SparkSlots()
    tasks = []
    for path in ready:
        text = f"open({str(path)!r}, 'w').close(); import threading; threading.Event().wait()"
        folder = tmp_path / f"of-{path.name}"
        folder.mkdir()
        tasks.append(task_of(program(folder, text), slots))
    for task in tasks:
        task.look()
    assert [task._process is not None for task in tasks] == [True, True, False]
    assert [task.look().phase.value for task in tasks] == ["RUNNING", "RUNNING", "WAITING"]
    assert "2 Spark applications run" in tasks[2].look().trace
    eventually(lambda: ready[0].exists() and ready[1].exists(), "two applications run")
    for task in tasks:
        task.stop()
    assert not ready[2].exists()
    assert WorkerSettings.of({"spark.applications.max": "7"}).properties["spark.applications.max"] == "7"
    with pytest.raises(ConnectConfigError, match="at least 1"):
        WorkerSettings.of({"spark.applications.max": "0"})


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_stopped_task_ends_its_application_and_frees_its_slot(tmp_path, stubborn):
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " if stubborn else ""
    ready = tmp_path / "ready"
    text = f"{ignore}open({str(ready)!r}, 'w').close(); import threading; threading.Event().wait()"
    config = program(tmp_path, text) | {"stop.timeout.ms": "100"}
    slots, worker = SparkSlots(), {"spark.applications.max": "1"}
    first, second = task_of(config, slots, **worker), task_of(config, slots, **worker)
    first.look()
    second.look()
    process = first._process
    assert second._process is None  # one at a time
    eventually(ready.exists, "the application runs")
    first.stop()
    assert process.poll() in ((-9,) if stubborn else (-15,))
    second.look()
    assert second._process is not None
    second.stop()


def test_what_can_not_be_started_is_named(tmp_path):
    with pytest.raises(ConnectError, match="is no file"):
        SparkApplication().start({"spark.application": str(tmp_path / "no.py")}, None)
    config = program(tmp_path, "") | {"spark.submit": str(tmp_path / "no-such")}
    with pytest.raises(ConnectError, match="is not installed"):
        SparkApplication().start(config, None)
    values = SPARK_KEYS.parse(config | {"spark.submit.args": "--master 'local[2]'"})
    command = submission(values, config | {"spark.conf.spark.b": "2", "spark.conf.spark.a": "1"}, ["app.py"])
    submit = command.index(str(tmp_path / "no-such"))
    assert command[submit + 1 : -1] == ["--master", "local[2]", "--conf", "spark.a=1", "--conf", "spark.b=2"]
    connector = SparkApplication()
    connector.start(program(tmp_path, ""), None)
    assert len(connector.task_configs(9)) == 1


def test_the_delta_sinks_configuration_is_on_no_command_line(tmp_path):
    submitted = tmp_path / "submit"
    submitted.write_text(f"#!{sys.executable}\nimport sys; print(open(sys.argv[-1]).read()); raise SystemExit(1)")
    submitted.chmod(0o700)
    config = {
        "name": "c", "topics": "t", "table.location": "/tables", "spark.submit": str(submitted), "max.restarts": "0",
        "value.converter.basic.auth.user.info": "ann:secret",
    }  # fmt: skip
    connector = SparkDeltaSink()
    connector.start(config, None)
    task = SparkDeltaTask(Clock(), SparkSlots())
    with Lake(tmp_path / "lake") as lake:
        task.start(connector.task_configs(3)[0], ApplicationContext({"key.converter": "string", "x": "y"}, lake))
        task.look()
        arguments = task._process.args
        assert not any("secret" in one for one in arguments)
        assert Path(arguments[-1]).stat().st_mode & 0o077 == 0
        with pytest.raises(ConnectError) as failure:
            eventually(lambda: task.look() and task._process is None, "the application has ended")
    task.stop()
    assert not Path(arguments[-1]).exists()
    job = DeltaJob.of(str(failure.value).partition("output:\n")[2])
    assert (job.connector, job.config, job.worker) == ("c", config, {"key.converter": "string"})
    assert (job.lake, job.group_id) == (lake.uri, "connect-c")

"""The command line as a process: pipes, signals, terminals, what it loads."""

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress

import pytest
from support.cli_calls import WAIT_S, done, lines_of, open_lake, process, refused
from support.logs import put_checkpoint
from support.os_faults import fail_os

from tidelog.cli import main
from tidelog.log.checkpoints import rows


@pytest.fixture
def lake(tmp_path):
    address = str(tmp_path / "lake")
    open_lake(address).create_topic("orders")
    return address


@contextmanager
def running(*args, **more):
    """A process that does not outlive the test."""
    work = process(*args, **more)
    try:
        yield work
    finally:
        work.kill()
        work.communicate()


def finished(*args, **more):
    """(exit code, stdout, stderr) of a process."""
    with running(*args, **more) as work:
        out, err = work.communicate(timeout=WAIT_S)
        return work.returncode, (out or b"").decode(), (err or b"").decode()


# --- what it loads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["consume", "--help"], ["topic", "--help"]])
def test_help_loads_nothing_heavy(args):
    code = f"""
import sys
sys.argv = ["tidelog", *{args}]
from tidelog.cli.main import run
try:
    run()
except SystemExit as e:
    assert not e.code, e.code
heavy = ("pyspark", "deltalake", "pandas", "pyarrow", "numpy", "obstore")
print("heavy:", [m for m in heavy if m in sys.modules])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=WAIT_S)
    assert out.stdout.rstrip().endswith("heavy: []")


def test_a_command_loads_no_spark(lake):
    code = f"""
import sys
from tidelog.cli.main import app
app(["topic", "list", "--lake", {lake!r}], standalone_mode=False)
print("heavy:", [m for m in ("pyspark", "deltalake", "pandas") if m in sys.modules])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=WAIT_S)
    assert out.stdout == "orders\nheavy: []\n"


def test_a_branch_of_many_segments_loads_no_pandas(lake, tmp_path, monkeypatch):
    """Arrow loads it, in a third of the command's time, when it makes arrays of Python's and numpy's values."""
    monkeypatch.setattr(rows, "WORTH_A_GROUP", 1)
    topic = open_lake(lake).topic("orders")
    for _ in range(3):
        topic.append([{"value": b"1"}])
    put_checkpoint(topic.storage, "orders", topic.state().version)
    topic.append([{"value": b"2"}])
    code = f"""
import sys
from tidelog.cli.main import app
from tidelog.log.checkpoints import late_adds
late_adds.WORTH_A_GROUP = 1
app(["lake", "branch", {lake!r}, {str(tmp_path / "branch")!r}], standalone_mode=False)
print("heavy:", [m for m in ("pyspark", "deltalake", "pandas") if m in sys.modules])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=WAIT_S)
    assert out.stdout.rstrip().endswith("heavy: []")


# --- pipes -------------------------------------------------------------------------------------------------


def test_from_one_lake_to_another_through_a_pipe(lake):
    done("produce", "orders", "--lake", lake, "-K:", stdin="".join(f"k{i}:{i}\n" for i in range(500)))
    with running("consume", "orders", "-e", "-J", "--lake", lake) as source:
        code, _, err = finished("produce", "copy", "--json", "--lake", lake, stdin=source.stdout)
    assert (code, err) == (0, "% 500 records produced to topic copy: [0] 500 records up to offset 499\n")
    assert done("consume", "copy", "-e", "-q", "-K:", "--lake", lake).stdout == "".join(
        f"k{i}:{i}\n" for i in range(500)
    )


def test_records_arrive_while_the_producers_input_is_open(lake):
    with (
        running("produce", "orders", "--lake", lake, stdin=subprocess.PIPE) as producer,
        running("consume", "orders", "-q", "-c", "2", "--lake", lake) as consumer,
    ):
        lines = lines_of(consumer.stdout)
        for text in ("one", "two"):
            producer.stdin.write(f"{text}\n".encode())
            producer.stdin.flush()
            assert next(lines) == text
        assert consumer.wait(WAIT_S) == 0


@pytest.mark.parametrize("records", [3, 300_000])
def test_a_reader_that_leaves_early_is_no_error(lake, records):
    """With 3 records the consumer is idle when its reader leaves; with many it is writing."""
    done("produce", "orders", "--lake", lake, stdin="x\n" * records)
    with running("consume", "orders", "-q", "--lake", lake) as consumer:
        assert consumer.stdout.readline() == b"x\n"
        consumer.stdout.close()
        assert consumer.wait(WAIT_S) == 0
        assert consumer.stderr.read() == b""


@pytest.mark.parametrize("args", [["topic", "list"], ["topic", "describe", "orders"], ["lake", "describe"]])
def test_a_reader_that_is_not_there_is_no_error(lake, args):
    read, write = os.pipe()
    os.close(read)
    code, _, err = finished(*args, "--lake", lake, stdout=write)
    os.close(write)
    assert (code, err) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize(
    "args", [["topic", "list"], ["consume", "orders", "-e", "-q"], ["topic", "list", "--format", "json"]]
)
def test_output_that_can_not_be_written_is_an_error(lake, args):
    done("produce", "orders", "--lake", lake, stdin="x\n")
    with open("/dev/full", "wb") as full:
        code, _, err = finished(*args, "--lake", lake, stdout=full)
    assert code == 1
    words = "No space left on device. The operating system refused; correct that and try again."
    if "json" in args:
        assert json.loads(err)["error"]["message"] == words
    else:
        assert err == f"error: {words}\n"


# --- signals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_consumer_stops_when_it_is_asked(lake, number, code):
    done("produce", "orders", "--lake", lake, stdin="1\n2\n")
    with running("consume", "orders", "--lake", lake, start=subprocess.Popen) as consumer:
        assert consumer.stderr.readline() == b"% Reached end of topic orders [0] at offset 2\n"
        consumer.send_signal(number)
        assert consumer.wait(WAIT_S) == code
        assert consumer.stdout.read() == b"1\n2\n"
        assert consumer.stderr.read() == b""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_producer_that_is_asked_to_stop_keeps_what_it_read(lake, number, code):
    with (
        running(
            "produce", "orders", "--batch-records", "2", "--linger-ms", "3600000", "--lake", lake, stdin=subprocess.PIPE
        ) as producer,
        running("consume", "orders", "-c1", "-q", "--lake", lake) as consumer,
    ):
        producer.stdin.write(b"one\ntwo\nthree\nfo")
        producer.stdin.flush()
        # A pipe gives what was written at once as one piece: when the first two are there, the rest is read, too.
        assert consumer.stdout.readline() == b"one\n"
        producer.send_signal(number)
        assert producer.wait(WAIT_S) == code
        assert producer.stderr.read().decode().splitlines() == [
            "% 3 records produced to topic orders: [0] 3 records up to offset 2",
            "% An unfinished line of 2 bytes was not produced.",
        ]
    assert done("consume", "orders", "-e", "-q", "--lake", lake).stdout == "one\ntwo\nthree\n"


@pytest.fixture
def long(lake):
    """A lake whose topic orders holds far more than a pipe does: 2,000 lines of 1,000 bytes."""
    done("produce", "orders", "--lake", lake, stdin=("x" * 999 + "\n") * 2_000)
    return lake


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_stop_does_not_cut_a_line(long, monkeypatch, unbuffered):
    """The consumer is stuck when it is asked to stop, and finishes once its pipe is read again."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with running("consume", "orders", "-q", "--lake", long, bufsize=0) as consumer:
        first = consumer.stdout.read(1)
        consumer.send_signal(signal.SIGINT)
        out, err = consumer.communicate(timeout=WAIT_S)
        assert {len(line) for line in (first + out).splitlines(keepends=True)} == {1000}
        assert (consumer.returncode, err) == (130, b"")


def test_a_second_ctrl_c_does_not_wait(long):
    with running("consume", "orders", "-q", "--lake", long) as consumer:
        assert consumer.stdout.read(1) == b"x"
        while consumer.poll() is None:
            consumer.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                consumer.wait(0.1)
        assert consumer.returncode == 130
        assert consumer.stderr.read() == b""


# --- terminals ---------------------------------------------------------------------------------------------


def on_a_terminal(*args, typed=b""):
    """(exit code, what the terminal shows) of a process whose three streams are a terminal."""
    ours, theirs = pty.openpty()
    with running(*args, stdin=theirs, stdout=theirs, stderr=theirs) as work:
        os.close(theirs)
        if typed:
            os.write(ours, typed)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
        os.close(ours)
        return work.wait(WAIT_S), shown.decode()


def test_a_person_is_asked_before_a_topic_is_deleted(lake):
    code, shown = on_a_terminal("topic", "delete", "orders", "--lake", lake, typed=b"n\n")
    assert code == 1
    assert "Delete topic orders (1 partition, 0 offsets, 0 B)? [y/N]" in shown
    assert "Nothing was deleted." in shown
    code, shown = on_a_terminal("topic", "delete", "orders", "--lake", lake, typed=b"y\n")
    assert code == 0
    assert "Deleted topic orders." in shown


def test_a_person_gets_a_table_of_topics(lake):
    _, shown = on_a_terminal("topic", "list", "--lake", lake)
    assert "partitions" in shown
    assert "───" in shown


def test_a_person_without_topics_is_told_what_to_do(tmp_path):
    open_lake(str(tmp_path))
    assert "tidelog topic create" in on_a_terminal("topic", "list", "--lake", str(tmp_path))[1]


def test_a_person_types_records(lake):
    code, shown = on_a_terminal("produce", "orders", "--lake", lake, typed=b"one\ntwo\n\x04")
    assert code == 0
    assert "% A record a line; Ctrl-D ends." in shown
    assert "% 2 records produced" in shown


# --- failures ----------------------------------------------------------------------------------------------


def test_a_mistake_of_tidelog_is_told_as_one(monkeypatch, capsys):
    def broken(**_):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(main, "app", broken)
    for argv, traceback in ((["tidelog"], False), (["tidelog", "--debug"], True)):
        monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as end:
            main.run()
        assert end.value.code == 1
        err = capsys.readouterr().err
        assert "error: Unexpected ZeroDivisionError: by zero. This is a mistake in tidelog" in err
        assert ("Traceback" in err) is traceback


@pytest.mark.parametrize(("number", "why"), [(28, "Free space there"), (13, "read and write access")])
def test_a_lake_that_can_not_be_written(tmp_path, monkeypatch, number, why):
    open_lake(str(tmp_path)).create_topic("orders")
    fail_os(monkeypatch, "write", number, lambda fd, *_: fd > 2)
    fail_os(monkeypatch, "open", number, lambda path, flags, *_: bool(flags & os.O_CREAT))
    assert why in refused(1, "topic", "alter", "orders", "--partitions", "2", "--lake", str(tmp_path))
    assert why in refused(1, "topic", "create", "new", "--lake", str(tmp_path / "other"))


def test_a_place_that_can_be_no_lake():
    code, out, err = finished("topic", "create", "orders", "--lake", "/dev/null/lake")
    assert (code, out) == (1, "")
    assert "/dev/null/lake" in err
    assert "Traceback" not in err

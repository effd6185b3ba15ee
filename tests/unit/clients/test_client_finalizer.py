"""Clients that are closed, forgotten, or left to the end of the program: they give back all they held."""

import gc
import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from support.consumers import PATIENCE_S, consumer, poll_texts
from support.logs import read, values
from support.nursery import run_forked
from support.producers import live_lake, producer
from support.waiting import eventually

from tidelog.clients.producer.producer import Producer
from tidelog.log.base.worker_threads import Helpers
from tidelog.log.lake import Lake

FDS = Path("/proc/self/fd")


def held() -> list[str]:
    """What the process has open of what consumers use."""
    found = []
    for name in os.listdir(FDS):
        try:
            found.append(os.readlink(FDS / name).partition(":")[0].partition("[")[0])
        except OSError:  # the folder itself
            continue
    return sorted(kind for kind in found if kind in ("pipe", "anon_inode") or "inotify" in kind)


def own_threads() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name.startswith("tidelog")}


def ends_of(child: int) -> list[int]:
    """The exit code of a child, once it has ended."""
    pid, status = os.waitpid(child, os.WNOHANG)
    return [os.waitstatus_to_exitcode(status)] if pid else []


@pytest.fixture
def address(tmp_path: Path) -> str:
    with Lake(str(tmp_path / "lake")) as lake:
        lake.create_topic("t", 1)
        lake.topic("t").append(values("1"))
    return str(tmp_path / "lake")


def member(address: str) -> object:
    """A consumer that has read something as a member of its group."""
    made = consumer(address, enable_auto_commit="false")
    made.subscribe(["t"])
    assert poll_texts(made, 1) == ["1"]
    return made


@pytest.mark.skipif(not FDS.exists(), reason="no /proc")
@pytest.mark.parametrize("how", ["closed", "forgotten", "forgotten in a cycle"])
def test_a_consumer_gives_back_its_files_and_threads(address: str, how: str) -> None:
    gc.collect()
    files, threads = held(), own_threads()
    made = member(address)
    assert len(held()) > len(files)
    if how == "closed":
        made.close()  # type: ignore[attr-defined]
    elif how == "forgotten in a cycle":
        made.itself = made  # type: ignore[attr-defined]
    del made

    def gave_back() -> bool:
        gc.collect()  # the client first, then its lake, whose store has threads that end with it
        return own_threads() <= threads and held() == files

    eventually(gave_back, "its threads and files are gone")


def test_a_producer_that_is_forgotten_while_its_own_thread_collects_ends() -> None:
    """A collection may run in the committer's thread, with the locks of log and producer held."""
    lake, storage = live_lake()
    lake.create_topic("t", 1)
    before = own_threads()
    collected = threading.Event()

    def collect(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and forgotten.is_set():
            gc.collect()
            collected.set()

    forgotten = threading.Event()
    made = producer(lake, linger_ms=300)
    made.itself = made  # type: ignore[attr-defined]
    made.produce("t", "1")
    storage.hook = collect
    gc.disable()
    try:
        del made
        forgotten.set()
        assert collected.wait(PATIENCE_S)
    finally:
        gc.enable()
    eventually(lambda: own_threads() <= before, "its threads are gone")


def test_helpers_that_have_ended_leave_the_work_to_their_caller() -> None:
    with Helpers(1) as helpers:
        assert helpers.submit(threading.get_ident).result() != threading.get_ident()
    assert helpers.submit(threading.get_ident).result() == threading.get_ident()
    assert list(helpers.map(abs, [-1, 2])) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        helpers.submit(lambda: 1 / 0).result()


PROGRAM = """
import atexit, sys
import tidelog

plain = tidelog.Producer({"lake": sys.argv[1], "linger.ms": 60_000})
copier = tidelog.Producer({"lake": sys.argv[1], "linger.ms": 60_000, "transactional.id": "x"})


def at_the_end():
    assert plain.flush(30) == 0
    copier.commit_transaction()
    copier.close()


def told(error, message):
    assert error is None, error


atexit.register(at_the_end)
copier.init_transactions()
copier.begin_transaction()
for number in range(4000):
    plain.produce("plain", bytes(100), partition=number % 4, on_delivery=told)
    for topic in ("a", "b"):
        copier.produce(topic, bytes(100), partition=number % 4, on_delivery=told)
"""


def test_a_program_flushes_and_commits_when_it_ends(tmp_path: Path) -> None:
    """As programs of confluent-kafka do: `atexit.register(producer.flush)`. No executor takes work then."""
    address = str(tmp_path / "lake")
    with Lake(address) as lake:
        for topic in ("plain", "a", "b"):
            lake.create_topic(topic, 4)
    done = run_forked([sys.executable, "-c", PROGRAM, address], timeout=60)
    assert (done.returncode, "Error" in done.stderr) == (0, False), done.stderr
    with Lake(address) as lake:
        for topic in ("plain", "a", "b"):
            assert [len(read(lake, topic, p)) for p in range(4)] == [1000] * 4


def test_a_producer_that_is_left_open_does_not_hold_up_the_end_of_the_program(tmp_path: Path) -> None:
    program = PROGRAM.replace("atexit.register(at_the_end)\n", "")
    done = run_forked([sys.executable, "-c", program, str(tmp_path / "lake")], timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_clients_of_its_own_and_disturbs_none_of_its_parents(address: str) -> None:
    """What it inherits it can't use; that it ends is nothing to the parent."""
    here = Producer({"lake": address})
    here.produce("t", "2")
    assert here.flush(PATIENCE_S) == 0
    reader = consumer(address, enable_auto_commit="false")
    reader.subscribe(["t"])
    assert poll_texts(reader, 2) == ["1", "2"]
    child = os.fork()
    if not child:
        code = 1
        try:
            with Producer({"lake": address}) as own:
                own.produce("t", "3")
                code = 0 if own.flush(PATIENCE_S) == 0 else 2
        finally:
            os._exit(code)
    ended: list[int] = []
    try:
        eventually(lambda: ended.extend(ends_of(child)) or ended, "the child ends")
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert ended == [0]
    here.produce("t", "4")
    assert here.flush(PATIENCE_S) == 0
    assert poll_texts(reader, 2) == ["3", "4"]
    reader.close()
    here.close()

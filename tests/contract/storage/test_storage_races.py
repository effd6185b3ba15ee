"""The storage port under many threads and processes."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.forked_processes import forking
from support.storage_adapters import ADAPTERS, WRITES, names, write
from support.versitygw import S3Place

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.storage import Storage, open_storage

every_write = pytest.mark.parametrize("how", WRITES)
NAMES = [f"log/{i:03d}" for i in range(200)]


@pytest.fixture(params=ADAPTERS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return ADAPTERS[request.param](tmp_path)


def win_what_you_can(storage: Storage, worker: str) -> list[str]:
    return [name for name in NAMES if storage.put_if_absent(name, worker.encode())]


def check_race(storage: Storage, wins: dict[str, list[str]]) -> None:
    """Each name was won once, and holds what its winner wrote."""
    assert sorted(name for won in wins.values() for name in won) == NAMES
    assert {name: storage.get(name).decode() for name in NAMES} == {n: w for w, won in wins.items() for n in won}
    assert names(storage, "log") == NAMES


def together(*work: Callable[[], None]) -> None:
    """Run these in threads, all started at one moment; an error in any fails the test."""
    start, errors = threading.Barrier(len(work)), []

    def run(one: Callable[[], None]) -> None:
        start.wait()
        try:
            one()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@every_write
def test_a_reader_sees_an_object_whole_or_not_at_all(storage: Storage, how: str):
    written = threading.Event()
    versions = {bytes([i]) * 1_000_000 for i in range(20)}

    def writer() -> None:
        for data in sorted(versions):
            WRITES[how](storage, "f/a", data)
        written.set()

    def reader() -> None:
        while not written.is_set():
            try:
                assert storage.get("f/a") in versions
            except ObjectNotFoundError:
                continue
            assert {found.size for found in storage.list_after("f")} == {1_000_000}

    together(writer, reader, reader)
    assert storage.get("f/a") in versions


def test_of_eight_threads_one_wins_each_name(storage: Storage):
    wins: dict[str, list[str]] = {}

    def race(worker: str) -> None:
        wins[worker] = win_what_you_can(storage, worker)

    together(*(lambda worker=f"thread {i}": race(worker) for i in range(8)))
    check_race(storage, wins)


def test_all_methods_at_once(storage: Storage):
    def work(worker: int) -> None:
        for i in range(30):
            mine = f"t{worker}/{i}"
            storage.put(mine, b"put")
            write(storage, mine, b"created")
            storage.sync([mine])
            assert storage.get(mine) == b"created"
            assert mine in names(storage, f"t{worker}")
            assert f"t{worker}" in storage.list_folders("")
            storage.delete(mine)

    # The test server removes a folder with its last object, and refuses a put that makes the folder at that moment.
    storage.put("another", b"stays")
    together(*(lambda worker=worker: work(worker) for worker in range(6)))
    assert [names(storage, f"t{worker}") for worker in range(6)] == [[]] * 6


# --- processes -----------------------------------------------------------------------------------------------


def race_in_process(uri: str, options: dict[str, str], worker: str, start: object, answers: object) -> None:
    storage = open_storage(uri, options)
    start.wait()
    answers.put((worker, win_what_you_can(storage, worker)))


def race_of_processes(uri: str, options: dict[str, str]) -> None:
    """Four processes, forked, so that they share nothing but the store."""
    context = forking()
    start, answers = context.Barrier(4), context.Queue()
    racers = [context.Process(target=race_in_process, args=(uri, options, f"p{i}", start, answers)) for i in range(4)]
    for racer in racers:
        racer.start()
    wins = dict(answers.get(timeout=60) for _ in racers)
    for racer in racers:
        racer.join()
    assert len(wins) == 4
    check_race(open_storage(uri, options), wins)


def test_of_four_processes_one_wins_each_name(tmp_path: Path):
    race_of_processes(str(tmp_path), {})
    assert sorted(os.listdir(tmp_path / "log")) == [name.removeprefix("log/") for name in NAMES]


def test_of_four_processes_one_wins_each_name_on_s3(s3: S3Place):
    race_of_processes(s3.uri, s3.options)

"""Registries as processes that are killed and frozen again and again while eight clients register.

TIDELOG_REGISTRY_MISHAPS=200 makes more of it; TIDELOG_REGISTRY_SEED=7 another run.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from typing import Any

import httpx
from support.nursery import ForkedPython
from support.waiting import eventually

CLIENTS = 8
MISHAPS = int(os.environ.get("TIDELOG_REGISTRY_MISHAPS", "4"))
SEED = os.environ.get("TIDELOG_REGISTRY_SEED", "1")
# Each mishap falls among registrations: six for each part of the run.
SCHEMAS = 6 * (MISHAPS + 1)
# After which a client asks the other registry; the same request again gets the same answer.
IMPATIENT_S = 2.0
CONFLICT = 409
NOT_COMPATIBLE = 40901


class Registries:
    """Two registries over one lake; a place of a killed one is taken by the next."""

    def __init__(self, lake: Path) -> None:
        self._lake = lake
        self.processes: list[subprocess.Popen[str]] = []
        self.urls: list[str] = []
        for place in range(2):
            self.start(place)

    def start(self, place: int) -> None:
        arguments = ["--lake", str(self._lake), "registry", "start", "--format", "json", "--listener", "127.0.0.1:0"]
        process = ForkedPython([sys.executable, "-m", "tidelog", *arguments], stdout=subprocess.PIPE, text=True)
        self.processes[place : place + 1] = [process]
        assert process.stdout is not None
        self.urls[place : place + 1] = [json.loads(process.stdout.readline())["url"]]

    def kill(self, place: int) -> None:
        process = self.processes[place]
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


class Client:
    """Registers every schema in a subject of its own, each until it has an answer; and one that is refused."""

    def __init__(self, number: int, registries: Registries) -> None:
        self.number, self.registries = number, registries
        self.ids: dict[int, int] = {}
        self.refused = 0
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=f"client {number}")
        self.thread.start()

    def _run(self) -> None:
        try:
            sizes = [*range(1, SCHEMAS + 1)]
            Random(f"{SEED} {self.number}").shuffle(sizes)
            with httpx.Client(timeout=IMPATIENT_S) as http:
                for size in sizes:
                    subject = f"s{self.number}-{size}"
                    self.ids[size] = self._answer(http, subject, fixed(size))["id"]
                    # Fixed types of two sizes never read each other: it must be given no id.
                    assert self._answer(http, subject, fixed(SCHEMAS + size)).get("error_code") == NOT_COMPATIBLE
                    self.refused += 1
        except BaseException as error:
            self.failure = error

    def _answer(self, http: httpx.Client, subject: str, schema: str) -> dict[str, Any]:
        turn = self.number
        while True:
            turn += 1
            try:
                url = self.registries.urls[turn % 2]
                answer = http.post(f"{url}/subjects/{subject}/versions", json={"schema": schema})
            except httpx.TransportError:
                continue
            assert answer.status_code in (200, CONFLICT), answer.text
            found: dict[str, Any] = answer.json()
            return found


def fixed(size: int) -> str:
    return json.dumps({"type": "fixed", "name": "F", "size": size})


def test_ids_stay_unique_and_dense_while_registries_are_killed_and_frozen(tmp_path: Path) -> None:
    random, registries = Random(f"mishaps {SEED}"), Registries(tmp_path / "lake")
    clients = [Client(number, registries) for number in range(CLIENTS)]

    def done() -> int:
        return sum(one.refused for one in clients)

    def is_at(part: float) -> bool:
        return done() >= part * CLIENTS * SCHEMAS or all(not one.thread.is_alive() for one in clients)

    try:
        kinds = [("killed", "frozen")[number % 2] for number in range(MISHAPS)]
        random.shuffle(kinds)
        for number, kind in enumerate(kinds, 1):
            eventually(lambda at=number: is_at(at / (MISHAPS + 1)), f"the clients are at mishap {number}")
            place = random.randrange(2)
            if kind == "killed":
                registries.kill(place)
                registries.start(place)
            else:
                before = done()
                registries.processes[place].send_signal(signal.SIGSTOP)
                try:
                    eventually(lambda b=before: done() >= b + CLIENTS or is_at(1), "the other registry answers")
                finally:
                    registries.processes[place].send_signal(signal.SIGCONT)
        for one in clients:
            one.thread.join()
        assert [one.failure for one in clients] == [None] * CLIENTS
        assert all(one.ids == clients[0].ids for one in clients)
        assert sorted(clients[0].ids.values()) == [*range(1, SCHEMAS + 1)]
        for url in registries.urls:
            for size, number in clients[0].ids.items():
                found = httpx.get(f"{url}/schemas/ids/{number}", timeout=None).json()
                assert json.loads(found["schema"])["size"] == size
            last = httpx.get(f"{url}/schemas/ids/{SCHEMAS + 1}", timeout=None)
            assert last.status_code == 404
    finally:
        for place in range(2):
            registries.kill(place)
        for one in clients:
            one.thread.join(60)

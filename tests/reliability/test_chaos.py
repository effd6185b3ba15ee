"""A short chaos run with real processes: one round of each fault, and everything holds; and what it is made of."""

import socket
from pathlib import Path
from random import Random

import pytest
from chaos_nodes import pauses
from chaos_plan import BESIDE_BROKERS, FEW_WORKERS, KAFKA_WORKERS, Place
from chaos_run import FAULTS, Chaos, Verdict, Wanted
from chaos_storage import ChaosStorage, Faults, PowerNotes, Switch, cut_power
from history import History, Stretch
from journals import HistoryReader, JournalFile, events
from support.tcp_gate import tcp_gates

from tidelog.log.base.errors import StorageFullError, StoragePermissionError, StorageUnavailableError
from tidelog.log.storage import LocalStorage

SEED = 6


def test_a_short_run(tmp_path: Path) -> None:
    wanted = Wanted(SEED, seconds=10.0, rounds=1, records=2_000)
    verdict = Chaos(Place(tmp_path / "run"), FEW_WORKERS, wanted, print).run()
    found = "\n".join(verdict.problems)
    again = (
        "python tests/reliability/chaos.py --few --no-spark --seconds 10 --rounds 1"
        f" --seed {SEED} --records 2000 --keep FOLDER"
    )
    assert not found, f"{found}\n\nAgain, with the lake and the journals kept: {again}"
    assert verdict.rounds == dict.fromkeys(FAULTS, 1)
    assert verdict.counts["acknowledged"] >= 2_000
    assert verdict.counts["transactions committed"] > 0


# --- brokers -----------------------------------------------------------------------------------------------


def with_brokers(folder: Path, option: str, wanted: Wanted) -> Verdict:
    """Three brokers that end one after another, each started again, under librdkafka's and native clients."""
    verdict = Chaos(Place(folder / "run"), (*BESIDE_BROKERS, *KAFKA_WORKERS), wanted, print).run()
    again = f"python tests/reliability/chaos.py --seconds {wanted.seconds} {option} --seed {SEED} --keep FOLDER"
    found = "\n".join(verdict.problems)
    assert not found, f"{found}\n\nAgain, with the lake and the journals kept: {again}"
    assert verdict.counts["acknowledged"] >= wanted.records / 2
    assert verdict.counts["records read"] >= wanted.records / 2
    return verdict


def test_brokers_that_are_killed_lose_and_repeat_nothing(tmp_path: Path) -> None:
    wanted = Wanted(SEED, seconds=8.0, rounds=0, records=1_000, killed_every_s=3.0)
    verdict = with_brokers(tmp_path, "--kill-brokers 3", wanted)
    assert verdict.rounds["killed"] >= 3


def test_no_application_notices_a_rolling_restart(tmp_path: Path) -> None:
    wanted = Wanted(SEED, seconds=4.0, rounds=0, records=1_000, drained_every_s=1.0)
    verdict = with_brokers(tmp_path, "--drain-brokers 1", wanted)
    assert verdict.rounds["drained"] >= 3


# --- the nodes of a store --------------------------------------------------------------------------------


def test_pauses_while_a_majority_is_gone_are_counted_apart() -> None:
    assert pauses([1.0, 2.0, 5.0, 100.0, 140.0, 141.0], [(101.0, 121.0)]) == (95.0, 40.0)
    assert pauses([], []) == (0.0, 0.0)


def test_what_a_gate_holds_comes_through_when_it_opens() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        tcp_gates([server.getsockname()[:2]]) as (gate,),
        socket.create_connection(("127.0.0.1", gate.port), 10) as client,
    ):
        client.sendall(b"one")
        behind, _ = server.accept()
        with behind:
            assert behind.recv(3) == b"one"
            gate.shut()
            client.sendall(b"two")
            behind.settimeout(0.2)
            with pytest.raises(TimeoutError):
                behind.recv(3)
            gate.open()
            behind.settimeout(10)
            assert behind.recv(3) == b"two"


# --- the disk ----------------------------------------------------------------------------------------------


class Disk:
    """A faulty disk of one worker, and its files."""

    def __init__(self, folder: Path) -> None:
        self.root, self.notes = folder / "lake", folder / "power"
        self.root.mkdir()
        self.notes.mkdir()
        self.switch = Switch(folder / "switch.json")
        self.switch.set(Faults())
        self.storage = ChaosStorage(self.root, "w", self.switch, PowerNotes(self.notes, "w.0"), Random(1))

    def after_power_cut(self, seed: int) -> dict[str, bytes]:
        """Everything that is there after a power cut."""
        cut_power(self.root, self.notes, Random(seed), ("spared/",))
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def fates(folder: Path, steps: str) -> set[bytes | None]:
    """What may become of object `t/x` by power cuts after some steps."""
    found = set()
    for seed in range(40):
        (folder / str(seed)).mkdir()
        disk = Disk(folder / str(seed))
        for step in steps.split():
            if step == "sync":
                disk.storage.sync(["t/x"])
            elif step == "delete":
                disk.storage.delete("t/x")
            elif step == "sync-neighbour":
                disk.storage.put_if_absent("t/y", b"")
            elif step == "new":
                disk.storage.put_if_absent("t/x", b"NEW!")
            else:
                disk.storage.put("t/x", step.encode())
        found.add(disk.after_power_cut(seed).get("t/x"))
    return found


@pytest.mark.parametrize(
    ("steps", "may_be"),
    [
        ("aaaa", {b"aaaa", b"aa", b"", None}),
        ("aaaa sync", {b"aaaa"}),
        ("new", {b"NEW!"}),
        ("aaaa sync bbbb", {b"aaaa", b"bbbb"}),
        ("aaaa sync delete", {b"aaaa", None}),
        ("aaaa sync delete sync-neighbour", {None}),
        ("aaaa sync-neighbour", {b"aaaa", b"aa", b"", None}),
        ("aaaa sync bbbb sync", {b"bbbb"}),
    ],
)
def test_a_power_cut_takes_what_was_not_synced(steps: str, may_be: set[bytes | None], tmp_path: Path) -> None:
    assert fates(tmp_path, steps) == may_be


def test_a_created_file_is_lost_like_others_and_a_spared_folder_is_not(disk: Disk) -> None:
    for path in ("spared/x", *(f"t/{n}" for n in range(40))):
        with disk.storage.create(path) as file:
            file.write(b"data")
    left = disk.after_power_cut(1)
    assert left["spared/x"] == b"data"
    assert 5 < sum(data == b"data" for data in left.values()) < 35


def test_faults_strike_whom_they_are_for(disk: Disk) -> None:
    disk.storage.put("a", b"1")
    disk.switch.set(Faults(full=True))
    with pytest.raises(StorageFullError):
        disk.storage.put("b", b"1")
    with pytest.raises(StorageFullError), disk.storage.create("b"):
        pass
    assert disk.storage.get("a") == b"1"
    disk.switch.set(Faults(denied=("other",)))
    disk.storage.put("b", b"1")
    disk.switch.set(Faults(denied=("w",)))
    for call in (lambda: disk.storage.get("a"), lambda: disk.storage.list_after("")):
        with pytest.raises(StoragePermissionError):
            call()
    disk.switch.set(Faults())
    assert disk.storage.get("b") == b"1"


def test_a_lost_answer_is_one_of_a_call_that_was_made(disk: Disk) -> None:
    disk.switch.set(Faults(lost=("w",)))
    lost = 0
    for number in range(60):
        try:
            assert disk.storage.put_if_absent(f"t/{number}", b"1")
        except StorageUnavailableError:
            lost += 1
    assert 5 < lost < 40
    assert len(list(LocalStorage(disk.root).list_after("t"))) == 60


# --- journals ----------------------------------------------------------------------------------------------


def test_journals_become_a_history(tmp_path: Path) -> None:
    path = tmp_path / "w.0000.jsonl"
    journal = JournalFile(path)
    journal.note("send", topic="t", values=["w:1", "w:2"])
    journal.note("acked", topic="t", records=[(0, 7, "w:1", "k")])
    journal.note("begin", txn="w#1")
    journal.note("send", topic="u", values=["w:3"], txn="w#1")
    journal.note("committing", txn="w#1")
    journal.note("committed", txn="w#1")
    journal.note("read", records=[("t", 0, 6, "early")])
    journal.note("assign", group="g", places=[("t", 0)])
    journal.note("read", records=[("t", 0, 7, "w:1")])
    journal.note("seek", group="g", places=[("t", 0)])
    journal.note("read", records=[("t", 0, 7, "w:1"), ("t", 0, 8, "w:2")])
    journal.note("give up", places=[("t", 0)])
    journal.note("read", records=[("t", 0, 9, "late")])
    journal.note("look", bounds=[("t", 0, 0, 9)], committed=[("g", "t", 0, 8)])
    with path.open("ab") as file:
        file.write(b'{"e":"acked","topic":"t","rec')  # a kill in the midst of a write
    history = History()
    HistoryReader(history).take("w.0", events(path))
    assert [(a.place, a.offset, a.value, a.key) for a in history.acked] == [(("t", 0), 7, "w:1", "k")]
    assert {value: (one.topic, one.number) for value, one in history.sent.items()} == {
        "w:1": ("t", 1), "w:2": ("t", 2), "w:3": ("u", 3),
    }  # fmt: skip
    (transaction,) = history.transactions.values()
    assert (transaction.values, transaction.asked_to_commit, transaction.told) == ({"w:3": "u"}, True, "committed")
    assert history.stretches == [
        Stretch("w.0", "g", ("t", 0), [(7, "w:1")]),
        Stretch("w.0", "g", ("t", 0), [(7, "w:1"), (8, "w:2")]),
    ]
    assert history.unassigned == [("w.0", ("t", 0), 6), ("w.0", ("t", 0), 9)]
    assert history.looks[0].committed == {("g", ("t", 0)): 8}

"""A chaos run: faults in an order that the seed gives, then calm, then the checkers' verdict."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from chaos_branches import Branches
from chaos_nodes import NodeFaults, pauses
from chaos_plan import (
    COPIERS,
    COPIES,
    COPIES_BY_QUERY,
    INPUT,
    KAFKA_READERS,
    KAFKA_TOPICS,
    PARTITIONS,
    QUERY,
    QUICK,
    READERS,
    TOPICS,
    Pace,
    Place,
    Worker,
)
from chaos_processes import Processes, wait_s
from chaos_storage import MARK, Faults, cut_power
from checkers import SHOWN, check, summary
from history import History, Partition, Policy
from journals import HistoryReader, events

from tidelog.check.lake import Severity, check_lake
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.errors import KafkaException
from tidelog.clients.values.partitions import TopicPartition
from tidelog.log.lake import Lake

FAULTS = ("killed", "frozen", "disk full", "permissions lost", "answers lost", "power cut")
# Where brokers run, they are also stopped as an operator stops them.
DRAINED = "drained"
# How long the run may take to come to rest, each step of it; over a store each record costs calls. Seconds.
PATIENCE_S, STORE_PATIENCE_S = 240.0, 900.0
# A fault lasts no longer, seconds: past sessions and transactions' time-outs all the same.
LONGEST_S = 12.0
# What the product says of a store that did not answer.
NO_ANSWER = "No clear answer"


@dataclass(frozen=True)
class Wanted:
    """What a run is to be: `seconds` of chaos in rounds, `rounds` of each fault, and a least number of records."""

    seed: int
    seconds: float
    rounds: int
    records: int
    # Instead of rounds: seconds between two brokers that are killed, or drained, one after another.
    killed_every_s: float = 0.0
    drained_every_s: float = 0.0
    # Seconds between two branches, which are judged; 0 for none.
    branched_every_s: float = 0.0
    pace: Pace = field(default_factory=Pace)

    @property
    def only_brokers_end(self) -> bool:
        """Whether nothing else goes wrong."""
        return bool(self.killed_every_s or self.drained_every_s)


@dataclass
class Verdict:
    """The result of a run. `problems` is empty when everything held."""

    seed: int
    seconds: float = 0.0
    rounds: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Chaos:
    """One run."""

    def __init__(
        self,
        place: Place,
        workers: Sequence[Worker],
        wanted: Wanted,
        say: Callable[[str], None],
        nodes: NodeFaults | None = None,
    ) -> None:
        """`nodes`: of a replicated store that the lake is in; then they alone suffer faults."""
        self._place = place
        self._nodes = nodes
        self._wanted = wanted
        self._rng = Random(f"chaos {wanted.seed}")
        self._say = say
        self._faults = Faults()
        self._processes = Processes(place, workers, wanted.seed)
        self._rounds: Counter[str] = Counter()
        self._fates: Counter[str] = Counter()
        self._problems: list[str] = []
        self._branches = Branches(place, wanted.branched_every_s)
        self._began_s = time.monotonic()

    def run(self) -> Verdict:
        """Do all of it; no process is left behind."""
        self._place.make(self._nodes.lake if self._nodes else None, self._wanted.pace)
        self._switch(Faults())
        try:
            self._processes.start(self._processes.workers)
            with self._branches:
                if self._nodes is not None:
                    self._go_through_nodes(self._nodes)
                elif self._wanted.only_brokers_end:
                    self._go_through_brokers()
                else:
                    self._go_through_rounds()
                self._gather_records()
                self._branches.make_no_more()
                self._settle()
        finally:
            self._processes.kill(self._processes.names)
        history = self._history()
        self._problems += self._processes.problems
        self._problems += self._unexplained()
        self._problems += self._repeats_lost(history)
        if self._wanted.drained_every_s:
            self._problems += self._errors_of_applications()
        self._problems += summary(check(history))
        self._problems += self._check_lake() + self._branches.problems
        took_s = time.monotonic() - self._began_s
        return Verdict(self._wanted.seed, round(took_s, 1), dict(self._rounds), self._count(history), self._problems)

    # --- faults --------------------------------------------------------------------------------------------

    def _go_through_rounds(self) -> None:
        kinds = (*FAULTS, *([DRAINED] if self._brokers else []))
        faults = [fault for fault in kinds for _ in range(self._wanted.rounds)]
        self._rng.shuffle(faults)
        each_s = self._wanted.seconds / max(1, len(faults))
        wait_s(min(each_s, 4.0), self._processes)
        for fault in faults:
            until = time.monotonic() + each_s
            self._say(f"{time.monotonic() - self._began_s:6.1f} s  {fault}")
            self._strike(fault, min(LONGEST_S, each_s * self._rng.uniform(0.2, 0.7)))
            self._rounds[fault] += 1
            wait_s(max(0.0, until - time.monotonic()), self._processes)

    def _go_through_nodes(self, nodes: NodeFaults) -> None:
        def say(text: str) -> None:
            self._say(f"{time.monotonic() - self._began_s:6.1f} s  {text}")

        for fault in nodes.go_through(self._wanted.seconds, self._rng, self._processes, say, self._problems):
            self._rounds[fault] += 1

    @property
    def _brokers(self) -> list[str]:
        return [name for name, worker in self._processes.workers.items() if worker.role == "broker"]

    def _go_through_brokers(self) -> None:
        """One broker after another ends, and is started again at once."""
        every_s = self._wanted.killed_every_s or self._wanted.drained_every_s
        self._await(lambda: self._serving() >= len(self._brokers), "brokers")
        self._await(lambda: len(self._events("assign")) >= 2, "members")
        # librdkafka goes back to the beginning when its first look for that has no answer in time, though a later one
        # had, and it reads by then.
        places = len(KAFKA_TOPICS) * PARTITIONS
        with self._place.seen() as lake:
            self._await(lambda: len(_committed(lake, KAFKA_READERS)) >= places, "readers of all partitions")
        until = time.monotonic() + self._wanted.seconds
        while time.monotonic() < until:
            for name in self._brokers:
                if self._wanted.killed_every_s:
                    self._processes.kill([name])
                    self._processes.start([name])
                    self._rounds["killed"] += 1
                else:
                    self._restart(name)
                wait_s(every_s, self._processes)

    def _restart(self, name: str) -> None:
        """Drain a broker, and go on once its successor serves, as an operator does."""
        served = self._serving()
        self._processes.drain([name])
        self._rounds[DRAINED] += 1
        self._await(lambda: self._serving() > served, f"successor of {name}")

    def _serving(self) -> int:
        """How many processes have begun to serve."""
        return len(self._events("serves"))

    def _strike(self, fault: str, seconds: float) -> None:
        processes, victims = self._processes, self._victims()
        if fault == "killed":
            processes.kill(victims)
            wait_s(self._rng.uniform(0.0, seconds), processes)
            processes.start(victims)
        elif fault == "frozen":
            processes.freeze(victims)
            wait_s(seconds, processes)
            processes.thaw()
        elif fault == DRAINED:
            processes.drain(self._rng.sample(self._brokers, k=1))
        elif fault == "power cut":
            gone = processes.names
            with self._branches.none_amid():
                processes.kill_all_at_once()
                self._fates += cut_power(self._place.lake, self._place.notes, self._rng, (f"{QUICK}/",))
            processes.start(gone)
        else:
            everyone = tuple(processes.names) if self._rng.random() < 0.3 else tuple(victims)
            self._switch(
                Faults(
                    full=fault == "disk full",
                    denied=everyone if fault == "permissions lost" else (),
                    lost=tuple(processes.names) if fault == "answers lost" else (),
                )
            )
            wait_s(seconds, processes)
            self._switch(Faults())

    def _victims(self) -> list[str]:
        names = self._processes.names
        return self._rng.sample(names, k=min(len(names), self._rng.choice([1, 2, 3, len(names) // 2])))

    def _switch(self, faults: Faults) -> None:
        self._faults = faults
        self._place.switch.set(faults)

    def _gather_records(self) -> None:
        """Go on in calm until there are enough records, as many are acknowledged, and a transaction has committed."""
        wanted = self._wanted.records
        with self._place.seen() as lake:
            self._await(lambda: _records(lake) >= wanted, f"{wanted} records")
        self._await(lambda: self._acknowledged() >= wanted, f"{wanted} acknowledged records")
        if any(worker.role == "transactional" for worker in self._processes.workers.values()):
            self._await(lambda: bool(self._events("committed")), "committed transaction")

    def _acknowledged(self) -> int:
        return sum(len(event["records"]) for event in self._events("acked"))

    # --- the end -------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """All workers finish: producers, then copiers, then readers."""
        processes = self._processes
        processes.thaw()
        processes.start(processes.workers)
        stopped = ["producer", "transactional", "kafka-producer"]
        self._stop(stopped, "maintainer")
        with self._place.seen() as lake:
            if any(worker.role == "copier" for worker in processes.workers.values()):
                self._await(lambda: _behind(lake, COPIERS, [INPUT]) == 0, "end of copying")
            stopped += ["copier", "query"]
            self._stop(stopped, "maintainer")
            kept = [name for name, topic in TOPICS.items() if topic.rule.policy is Policy.KEEP]
            if any(worker.role == "reader" for worker in processes.workers.values()):
                self._await(lambda: _behind(lake, READERS, kept) == 0, "end of reading")
            if self._brokers:
                self._await(lambda: _behind(lake, KAFKA_READERS, KAFKA_TOPICS) == 0, "end of Kafka's clients reading")
        stopped += ["reader", "maintainer", "watcher", "kafka-reader"]
        self._stop(stopped)
        self._stop([*stopped, "broker"])

    def _stop(self, roles: Sequence[str], *later: str) -> None:
        """End roles and see them ended; those of `later` have longer."""
        self._switch(Faults(stopped=(*roles, *later)))
        self._await(lambda: self._processes.has_ended(roles), f"end of {', '.join(roles)}")

    def _await(self, there: Callable[[], bool], what: str) -> None:
        patience_s = PATIENCE_S if self._nodes is None else STORE_PATIENCE_S
        until = time.monotonic() + patience_s
        self._say(f"{time.monotonic() - self._began_s:6.1f} s  waits for: {what}")
        while not there():
            if time.monotonic() > until:
                self._problems.append(f"after {patience_s:.0f} s there is no {what}; there are {self._processes.names}")
                self._processes.print_stacks()
                return
            wait_s(0.3, self._processes)

    # --- the verdict ---------------------------------------------------------------------------------------

    def _history(self) -> History:
        copies = [*COPIES, *(COPIES_BY_QUERY if QUERY.name in self._processes.workers else ())]
        history = History(rules={name: topic.rule for name, topic in TOPICS.items()}, copies=copies)
        reader = HistoryReader(history)
        for life, path in self._place.journals_of():
            reader.take(life, events(path))
        with self._place.seen() as lake:
            for name in TOPICS:
                for partition, (start, end) in lake.offsets(name).items():
                    history.log[name, partition] = _read(lake, name, partition, start, end)
            for group in (COPIERS, READERS, KAFKA_READERS):
                history.committed |= {(group, place): offset for place, offset in _committed(lake, group).items()}
        return history

    def _unexplained(self) -> list[str]:
        """Failures that maintenance named, and that the run did not make; damage that was reported to clients."""
        found = [
            f"maintenance: {failure}"
            for _, path in self._place.journals_of()
            for event in events(path)
            for failure in event.get("failures", ())
            if MARK not in failure and not (self._nodes and NO_ANSWER in failure)
        ]
        found += [
            f"{life}: {event}"
            for life, path in self._place.journals_of()
            for event in events(path)
            if event.get("why") == "INVALID_MSG"
        ]
        return found[:SHOWN] + ([f"{len(found) - SHOWN} more"] if len(found) > SHOWN else [])

    def _repeats_lost(self, history: History) -> list[str]:
        """Records of which a broker said that they were there already, without an offset."""
        there = {value for one in history.log.values() for _, _, value in one.records}
        said = {value for one in self._events("repeated") for value in one["values"]}
        return [f"{value} was acknowledged as a repeat, and is not there" for value in sorted(said - there)]

    def _errors_of_applications(self) -> list[str]:
        """What Kafka's clients reported to their applications."""
        return [f"an application got {one}" for what in ("failed", "trouble") for one in self._events(what)]

    def _events(self, what: str) -> list[dict[str, Any]]:
        return [one for _, path in self._place.journals_of() for one in events(path) if one["e"] == what]

    def _check_lake(self) -> list[str]:
        with self._place.seen() as lake:
            report = check_lake(lake, deep=True)
        return [] if report.green else [f"check: {f}" for f in report.findings if f.severity is Severity.ERROR]

    def _micro_batches(self) -> int:
        """How many the Spark query has committed. Spark keeps the newest ones' notes."""
        notes = (self._place.folder / "checkpoint" / "commits").glob("[0-9]*")
        return max((int(note.name) + 1 for note in notes), default=0)

    def _count(self, history: History) -> dict[str, int]:
        told = Counter(one.told or "unknown" for one in history.transactions.values())
        in_transactions = sum(len(one.values) for one in history.transactions.values() if one.told == "committed")
        happened = Counter(
            event["e"] for _, path in self._place.journals_of() for event in events(path) if event["e"] != "read"
        )
        by_query = {topic for copy in history.copies if copy.group is None for topic in copy.targets}
        return {
            "acknowledged": len(history.acked) + in_transactions,
            "acknowledged by producers": len(history.acked),
            "acknowledged by transactions": in_transactions,
            "transactions committed": told["committed"],
            "transactions aborted": told["aborted"],
            "transactions without an answer": told["unknown"],
            "records in the log": sum(len(one.records) for one in history.log.values()),
            "copied by the Spark query": sum(len(one.records) for at, one in history.log.items() if at[0] in by_query),
            "micro-batches of the Spark query": self._micro_batches(),
            "records read": sum(len(stretch.reads) for stretch in history.stretches),
            "assignments": sum(1 for stretch in history.stretches if stretch.reads),
            "looks": len(history.looks),
            "runs of maintenance": happened["maintained"],
            **self._branches.counts,
            **self._times(),
            **{f"processes: {what}": count for what, count in sorted(self._processes.counts.items())},
            **{f"objects not synced at power cuts: {what}": count for what, count in sorted(self._fates.items())},
        }

    def _times(self) -> dict[str, int]:
        """How long producers waited, in ms: for acknowledgements, and at most for the next one of any."""
        if self._nodes is None:
            return {}
        took = sorted(ms for event in self._events("took") for ms in event["ms"])
        acked_s = [event["s"] for what in ("acked", "committed") for event in self._events(what)]
        one, majority = pauses(acked_s, self._nodes.majority_gone)
        return {
            "p50 of an acknowledgement, ms": round(took[len(took) // 2]) if took else 0,
            "p99 of an acknowledgement, ms": round(took[len(took) * 99 // 100]) if took else 0,
            "longest pause of all acknowledgements, a node gone, ms": round(one * 1000),
            "longest pause of all acknowledgements, a majority gone for 20 s, ms": round(majority * 1000),
            "longest healing of a node, ms": round(self._nodes.longest_heal_s * 1000),
        }


def _records(lake: Lake) -> int:
    return sum(end for name in TOPICS for _, end in lake.offsets(name).values())


def _committed(lake: Lake, group: str) -> dict[tuple[str, int], int]:
    places = [TopicPartition(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
    with Consumer({"lake": lake, "group.id": group, "enable.auto.commit": False}) as consumer:
        found = consumer.committed(places, timeout=1.0)
    return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}


def _behind(lake: Lake, group: str, topics: Sequence[str]) -> int:
    """How many records of the topics the group has not committed; 1 at least while that is unknown."""
    try:
        committed = _committed(lake, group)
    except KafkaException:
        return 1
    ends = {(topic, p): end for topic in topics for p, (_, end) in lake.offsets(topic).items()}
    return sum(end - committed.get(place, 0) for place, end in ends.items())


def _read(lake: Lake, name: str, partition: int, start: int, end: int) -> Partition:
    found = Partition(start, end)
    for batch in lake.topic(name).read(partition, start, end):
        rows = zip(
            batch["offset"].to_pylist(), batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True
        )  # fmt: skip
        found.records += [
            (offset, None if key is None else key.decode(), value.decode()) for offset, key, value in rows
        ]
    return found

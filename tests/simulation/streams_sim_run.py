"""One run of a streams group: a seed, the true code or a planted bug, and what was found. As a program it repeats one.

Members are as Kafka Streams' are: each runs what the last answer gave it, and gives up all else. Answers
get lost, members freeze and are evicted, coordinators end and read the group's rows again, topics come and go. Judged
is what the members do: one of the group runs a task and can commit for it, and no process opens a state twice.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/streams_sim_run.py 17 --trace          # everything that happens in seed 17
python tests/simulation/streams_sim_run.py 0 --runs 1000       # many seeds, with what they found
"""

import hashlib
import random
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Final

from sim_running import Planted, repeat
from streams_sim_bugs import BUGS

from tidelog.broker.groups.acknowledgements import Acknowledgements
from tidelog.groups.model import CommittedOffset, Decision, GroupView, StreamsGroup, TopicPartition
from tidelog.groups.rules import members, offsets
from tidelog.groups.rules.modern.topics import AssignableTopic
from tidelog.groups.rules.streams import heartbeat
from tidelog.groups.rules.streams.configuring import Status
from tidelog.groups.rules.streams.heartbeat import StreamsHeartbeat
from tidelog.groups.store.rows import GroupsFold, changes
from tidelog.groups.topology import NO_TASKS, InnerTopic, StreamsTask, StreamsTopology, Subtopology, Tasks
from tidelog.log.base.errors import TidelogError
from tidelog.transactions.ports import GroupIdentity

TOPOLOGY: Final = StreamsTopology(
    0,
    (
        Subtopology("0", sources=("in",), repartition_sinks=("by-key",)),
        Subtopology("1", repartition_sources=(InnerTopic("by-key"),), changelogs=(InnerTopic("state"),)),
    ),
)
STEPS: Final = 150
GROUP: Final = "g"


@dataclass
class History:
    """What happened, by how often, and a digest of it."""

    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def note(self, what: str, line: str) -> None:
        """Something happened."""
        self.counts[what] += 1
        self.lines.append(f"{what} {line}")


@dataclass
class StreamsReport:
    """The result of a run. `problems` is empty when all invariants held."""

    seed: int
    problems: list[str]
    digest: str
    history: History = field(repr=False)


@dataclass
class _Client:
    """A member as it sees itself. `frozen`: it does nothing, and runs what it ran when it wakes up.

    `reticent`: it takes a while to do as it was `told`, and says what it runs only when that is done, or an answer did
    not come (`unsure`).
    """

    name: str
    process: str
    epoch: int = 0
    runs: Tasks = NO_TASKS
    joined: bool = False
    frozen: bool = False
    reticent: bool = False
    told: Tasks = NO_TASKS
    said: Tasks = NO_TASKS
    unsure: bool = False
    # A commit that is still on its way: the epoch it was sent in, and the place that it is of.
    sent: tuple[int, TopicPartition] | None = None

    def says(self) -> Tasks | None:
        """What it says that it runs."""
        if self.joined and self.reticent and not self.unsure and (self.runs != self.told or self.runs == self.said):
            return None
        self.said = self.runs
        return self.runs

    def lose(self) -> None:
        """It is no member, and runs nothing."""
        self.joined, self.epoch, self.unsure = False, 0, False
        self.runs = self.told = self.said = NO_TASKS


class _World:
    def __init__(self, seed: int, trace: list[str] | None) -> None:
        self.rng = random.Random(seed)
        self.trace = trace
        self.history = History()
        self.problems: list[str] = []
        self.view = GroupView()
        self.fold = GroupsFold()
        self.partitions: int | None = self.rng.randint(1, 4)
        self.standbys = self.rng.randint(0, 2)
        processes = self.rng.choices("pqr", k=5)
        reticent = self.rng.random() < 0.5
        self.clients = [
            _Client(f"m{number}", process, reticent=reticent and self.rng.random() < 0.7)
            for number, process in enumerate(processes)
        ]
        self.acknowledgements = Acknowledgements()
        self.ages = 0
        self.waits = self.rng.random() < 0.2

    # --- entries ---

    def decide(self, decision: Decision[object]) -> None:
        rows = changes(self.view, GROUP, decision, 7)
        self.fold.take(rows)
        if decision.group is not None:
            self.view = replace(self.view, group=decision.group)
        if self.fold.view(GROUP).group != self.view.group:
            self.problems.append("the rows say something else than the entry that wrote them")

    def say(self, what: str, line: str = "") -> None:
        self.history.note(what, line)
        if self.trace is not None:
            self.trace.append(f"{what} {line}")

    # --- members ---

    def beat(self, client: _Client, *, loses: bool = False) -> None:
        name = client.name
        if client.reticent and self.rng.random() < 0.7:
            client.runs = client.told
        request = StreamsHeartbeat(
            group_id=GROUP,
            member_id=name,
            epoch=client.epoch if client.joined else 0,
            topology=None if client.joined else TOPOLOGY,
            process_id=client.process,
            owned=client.says(),
            refresh=True,
            waits=self.waits,
        )
        count = self.partitions
        topics = {
            topic: None if count is None else AssignableTopic(f"{topic}-{self.ages}", count)
            for topic in TOPOLOGY.required
        }
        self.send(client)
        group = self.view.group
        heard = request if group is None else self.acknowledgements.heard(request, group)
        try:
            decision = heartbeat.streams_heartbeat(self.view, topics, heard, now_ms=7, standbys=self.standbys)
        except TidelogError as e:
            self.say("refused", f"{name} {type(e).__name__}")
            client.lose()
            return
        self.decide(decision)
        self.acknowledgements.keep(decision.response.group.members)
        answer = self.acknowledgements.answered(request, decision.response, believed=heard is request)
        if Status.ASSIGNMENT_DELAYED in [status for status, _ in decision.response.statuses]:
            self.say("delayed", name)
        if loses:
            self.say("lost", name)
            client.unsure = True
            return
        client.joined, client.epoch, client.unsure = True, answer.epoch, False
        if answer.assigned is not None and answer.assigned != client.told:
            client.told = answer.assigned
            if not client.reticent:
                client.runs = client.told
            self.say("told", f"{name} {answer.epoch} {_shown(client.runs)}")

    def leave(self, client: _Client) -> None:
        if client.joined:
            self.say("left", client.name)
            request = StreamsHeartbeat(group_id=GROUP, member_id=client.name, epoch=-1)
            try:
                self.decide(heartbeat.streams_heartbeat(self.view, {}, request, now_ms=7))
            except TidelogError as e:
                self.say("refused", f"{client.name} {type(e).__name__}")
        client.lose()

    def evict(self, client: _Client) -> None:
        group = self.view.group
        if isinstance(group, StreamsGroup) and client.name in group.members:
            self.say("evicted", client.name)
            watched = {client.name: group.members[client.name].epoch}
            self.decide(members.evict_silent(self.view, GROUP, watched, now_ms=7))

    # --- commits ---

    def send(self, client: _Client) -> None:
        """A commit for a task that it runs begins its way, unless another one still is on it."""
        if client.sent is None and client.joined and client.runs.active:
            (place, *_) = TOPOLOGY.inputs([self.rng.choice(sorted(client.runs.active))])
            client.sent = (client.epoch, place)

    def arrive(self, client: _Client) -> None:
        """It arrives: no other member may have got the task meanwhile."""
        if client.sent is None:
            return
        epoch, place = client.sent
        client.sent = None
        if not self._takes(GroupIdentity(GROUP, client.name, epoch), place):
            return
        self.say("late" if client.epoch != epoch else "committed", f"{client.name} {place}")
        others = [other for other in self.clients if other is not client and self._commits_of(other, place)]
        self.problems += [f"{client.name} and {other.name} committed {place}" for other in others]

    # --- a run ---

    def step(self) -> None:
        rng = self.rng
        client = rng.choice(self.clients)
        what = rng.random()
        if what < 0.05:
            self.partitions = rng.choice([None, 1, 2, 3, 5])
            self.ages += 1
            self.say("topics", str(self.partitions))
        elif what < 0.07:
            self.say("moved")  # another coordinator reads the group
            self.view = self.fold.view(GROUP)
            self.acknowledgements = Acknowledgements()
            for one in self.clients:
                one.unsure = True
        elif what < 0.08:
            self.waits = rng.random() < 0.2
        elif what < 0.14 and not client.frozen:
            client.frozen = client.joined
            self.say("frozen", client.name)
        elif client.frozen:
            if what < 0.4:
                self.evict(client)
            elif what < 0.55:
                client.frozen = False
                self.say("woke", client.name)
        elif what < 0.18:
            self.leave(client)
        elif what < 0.32:
            self.arrive(client)
        else:
            self.beat(client, loses=what < 0.44)

    def judge(self) -> None:
        group = self.view.group
        there = group.members if isinstance(group, StreamsGroup) else {}
        by_task: dict[StreamsTask, list[str]] = {}
        run: Counter[StreamsTask] = Counter()
        by_state: dict[tuple[str, StreamsTask], list[str]] = {}
        for client in self.clients:
            if client.joined and client.name in there:
                run.update(client.runs.active)
            if client.joined:
                for task in client.runs.active:
                    (place,) = TOPOLOGY.inputs([task])
                    if self._commits_of(client, place):
                        by_task.setdefault(task, []).append(client.name)
            if client.joined and self._is_in_its_epoch(client):
                for task in [*client.runs.active, *client.runs.standby, *client.runs.warmup]:
                    by_state.setdefault((client.process, task), []).append(client.name)
        self.problems += [f"{count} members run {task}" for task, count in run.items() if count > 1]
        self.problems += [f"{names} can all commit for {task}" for task, names in by_task.items() if len(names) > 1]
        self.problems += [
            f"{names} of process {process} have the state of {task}"
            for (process, task), names in by_state.items()
            if len(names) > 1
        ]

    def _commits_of(self, client: _Client, place: TopicPartition) -> bool:
        """Whether it runs what this is an input of, and would be let commit it."""
        return place in TOPOLOGY.inputs(client.runs.active) and self._takes(
            GroupIdentity(GROUP, client.name, client.epoch), place
        )

    def _takes(self, committer: GroupIdentity, place: TopicPartition) -> bool:
        try:
            offsets.decide_commit(self.view, committer, {place: CommittedOffset(1)})
        except TidelogError:
            return False
        return True

    def _is_in_its_epoch(self, client: _Client) -> bool:
        group = self.view.group
        member = group.members.get(client.name) if isinstance(group, StreamsGroup) else None
        return member is not None and member.epoch == client.epoch

    def settle(self) -> None:
        """All wake up, the topics are there, and all work is done."""
        self.partitions = self.partitions or 2
        self.waits = False
        for client in self.clients:
            client.frozen = False
        for _ in range(60):
            for client in self.clients:
                self.beat(client)
                self.judge()
        run = sorted(task for client in self.clients for task in client.runs.active)
        wanted = sorted(StreamsTask(part, number) for part in "01" for number in range(self.partitions))
        if run != wanted:
            self.problems.append(f"at rest {_shown_all(run)} are run, not {_shown_all(wanted)}")
        entries = self.view.group
        for client in self.clients:
            self.beat(client)
        if self.view.group is not entries:
            self.problems.append("at rest heartbeats write entries")


def run_streams(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> StreamsReport:
    """Run one seed."""
    world = _World(seed, trace)
    with planted():
        for _ in range(STEPS):
            world.step()
            world.judge()
            if world.problems:
                break
        else:
            world.settle()
    digest = hashlib.sha256("\n".join(world.history.lines).encode()).hexdigest()
    return StreamsReport(seed, world.problems, digest, world.history)


def _shown(tasks: Tasks) -> str:
    roles = {"active": tasks.active, "standby": tasks.standby, "warmup": tasks.warmup}
    return " ".join(f"{role} {_shown_all(sorted(of))}" for role, of in roles.items() if of)


def _shown_all(tasks: list[StreamsTask]) -> str:
    return ",".join(f"{task.subtopology}_{task.partition}" for task in tasks)


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run_streams, BUGS, lambda report: report.history.counts))

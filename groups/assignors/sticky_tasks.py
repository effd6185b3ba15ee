"""The assignor of streams groups: tasks stay where they are as far as that is fair, and copies where they were. Pure.

Source: `StickyTaskAssignor` (kafka 4.2): the order of its steps, and its quotas. Where that goes by the order of a hash
table, this goes by names, so that the same group always gets the same.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.groups.topology import StreamsTask, Tasks


class Workload(NamedTuple):
    """A subtopology's work: how many tasks it has, and whether they have state, of which there are copies."""

    tasks: int
    is_stateful: bool


@dataclass(frozen=True, slots=True)
class TaskWorker:
    """A member as the assignor sees it: of which process it is a thread, and the tasks that it was to have."""

    member_id: str
    process_id: str
    before: Tasks


class _Quota:
    """How many tasks a member may have, so that no two members differ by more than one."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.each = -(-tasks // members) if members else 0

    def has(self, count: int) -> None:
        """A member has `count` tasks now: one that has its full share is left out of what follows."""
        if count == self.each:
            self._members -= 1
            self._tasks -= count
            self.each = -(-self._tasks // self._members) if self._members > 0 else 0


@dataclass(slots=True)
class _Process:
    process_id: str
    counts: dict[str, int] = field(default_factory=dict)
    tasks: set[StreamsTask] = field(default_factory=set)

    @property
    def load(self) -> float:
        return sum(self.counts.values()) / len(self.counts)

    def idlest(self) -> str:
        return min(self.counts, key=lambda name: (self.counts[name], name))


class _Assignment:
    """An assignment that is being made."""

    def __init__(self, workers: Iterable[TaskWorker], workloads: Mapping[str, Workload], standbys: int) -> None:
        self.workers = {worker.member_id: worker for worker in sorted(workers, key=lambda one: one.member_id)}
        self.processes: dict[str, _Process] = {}
        self.active: dict[str, set[StreamsTask]] = {name: set() for name in self.workers}
        self.standby: dict[str, set[StreamsTask]] = {name: set() for name in self.workers}
        self.was_active: dict[StreamsTask, str] = {}
        self.was_copied: dict[StreamsTask, list[str]] = {}
        for name, worker in self.workers.items():
            self.processes.setdefault(worker.process_id, _Process(worker.process_id)).counts[name] = 0
            self.was_active |= dict.fromkeys(worker.before.active, name)
            for task in sorted(worker.before.standby | worker.before.warmup):
                self.was_copied.setdefault(task, []).append(name)
        tasks = {
            name: [StreamsTask(name, number) for number in range(of.tasks)] for name, of in sorted(workloads.items())
        }
        self.stateful = [task for name, own in tasks.items() if workloads[name].is_stateful for task in own]
        self.stateless = [task for name, own in tasks.items() if not workloads[name].is_stateful for task in own]
        self.standbys = standbys
        members, actives = len(self.workers), len(self.stateful) + len(self.stateless)
        self._of_stateful = _Quota(len(self.stateful), members)
        self._of_active = _Quota(actives, members)
        self._of_all = _Quota(actives + standbys * len(self.stateful), members)

    def process(self, member_id: str) -> _Process:
        return self.processes[self.workers[member_id].process_id]

    def count(self, member_id: str) -> int:
        return self.process(member_id).counts[member_id]

    def give(self, member_id: str, task: StreamsTask, role: Mapping[str, set[StreamsTask]], *quotas: _Quota) -> None:
        process = self.process(member_id)
        role[member_id].add(task)
        process.tasks.add(task)
        process.counts[member_id] += 1
        for quota in (*quotas, self._of_all):
            quota.has(process.counts[member_id])

    # --- active tasks ---

    def assign_active(self, tasks: Iterable[StreamsTask], *, stateful: bool) -> None:
        quota = self._of_stateful if stateful else self._of_active
        quotas = (self._of_stateful, self._of_active) if stateful else (self._of_active,)
        left: list[StreamsTask] = []
        for task in tasks:
            member = self.was_active.get(task)
            if member is not None and self.count(member) < quota.each:
                self.give(member, task, self.active, *quotas)
            else:
                left.append(task)
        rest: list[StreamsTask] = []
        for task in left:
            member = self._idlest(self.was_copied.get(task, ()))
            if member is not None and self.count(member) < quota.each:
                self.give(member, task, self.active, *quotas)
            else:
                rest.append(task)
        heap = [(process.load, name) for name, process in self.processes.items()]
        heapq.heapify(heap)
        for task in sorted(rest):
            _, name = heapq.heappop(heap)
            process = self.processes[name]
            self.give(process.idlest(), task, self.active, self._of_active)
            heapq.heappush(heap, (process.load, name))

    def _idlest(self, members: Iterable[str], without: StreamsTask | None = None) -> str | None:
        """Of these members that of the process with the least to do; `without`: of those that have not this task."""
        able = [name for name in members if without is None or without not in self.process(name).tasks]
        return min(able, key=lambda name: (self.process(name).load, self.count(name), name), default=None)

    # --- copies ---

    def assign_standby(self) -> None:
        left: list[StreamsTask] = []
        for task in sorted(self.stateful, key=lambda one: (one.partition, one.subtopology), reverse=True):
            for copy in range(self.standbys):
                before = self.was_active.get(task)
                if before is not None and task in self.process(before).tasks:
                    before = None
                if before is None or self.count(before) >= self._of_all.each:
                    before = self._idlest(self.was_copied.get(task, ()), without=task)
                if before is None or self.count(before) >= self._of_all.each:
                    left.extend([task] * (self.standbys - copy))
                    break
                self.give(before, task, self.standby)
        for task in sorted(left, reverse=True):
            able = [process for process in self.processes.values() if task not in process.tasks]
            if able:  # else there are fewer processes than copies
                idle = min(able, key=lambda process: (process.load, process.process_id))
                self.give(idle.idlest(), task, self.standby)


def assign_tasks(workers: Iterable[TaskWorker], workloads: Mapping[str, Workload], standbys: int) -> dict[str, Tasks]:
    """{member: its tasks}: each task is run once; a stateful one has `standbys` copies, in other processes.

    There are fewer copies where there are fewer processes. No member warms a task up: one goes on where its state is.
    """
    made = _Assignment(workers, workloads, standbys)
    if not made.workers:
        return {}
    made.assign_active(made.stateful, stateful=True)
    made.assign_active(made.stateless, stateful=False)
    if standbys:
        made.assign_standby()
    return {
        name: Tasks(frozenset(made.active[name]), frozenset(made.standby[name])) for name in made.workers
    }  # fmt: skip

"""The assignor of streams groups: fair, sticky, with copies in other processes, the same for the same group."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tidelog.groups.assignors.sticky_tasks import TaskWorker, Workload, assign_tasks
from tidelog.groups.topology import NO_TASKS, StreamsTask, Tasks

WORKERS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("pqrs"), min_size=1, max_size=8)
WORKLOADS = st.dictionaries(
    st.sampled_from(["0", "1", "2"]), st.builds(Workload, st.integers(0, 9), st.booleans()), max_size=3
)


def assigned(
    workers: dict[str, str], workloads: dict[str, Workload], standbys: int, before: dict[str, Tasks] | None = None
) -> dict[str, Tasks]:
    told = [TaskWorker(name, process, (before or {}).get(name, NO_TASKS)) for name, process in workers.items()]
    return assign_tasks(told, workloads, standbys)


@given(WORKERS, WORKLOADS, st.integers(0, 3))
def test_each_task_is_run_once_and_shares_are_equal(
    workers: dict[str, str], workloads: dict[str, Workload], standbys: int
) -> None:
    made = assigned(workers, workloads, standbys)
    run = [task for tasks in made.values() for task in tasks.active]
    assert sorted(run) == sorted(StreamsTask(name, n) for name, of in workloads.items() for n in range(of.tasks))
    processes = set(workers.values())
    copies = Counter(task for tasks in made.values() for task in tasks.standby)
    for task in run:
        wanted = min(standbys, len(processes) - 1) if workloads[task.subtopology].is_stateful else 0
        assert copies[task] == wanted
    for process in processes:
        own = [
            task for name, of in workers.items() if of == process for task in (*made[name].active, *made[name].standby)
        ]
        assert len(own) == len(set(own)), "a process has a state twice"


@given(WORKERS, WORKLOADS, st.integers(0, 2))
def test_what_is_assigned_stays(workers: dict[str, str], workloads: dict[str, Workload], standbys: int) -> None:
    made = assigned(workers, workloads, standbys)
    again = assigned(dict(reversed(workers.items())), workloads, standbys, made)
    assert {name: tasks.active for name, tasks in again.items()} == {name: tasks.active for name, tasks in made.items()}


@given(st.integers(1, 8), WORKLOADS)
def test_no_member_runs_more_than_one_task_more_than_another(count: int, workloads: dict[str, Workload]) -> None:
    workers = {f"m{n}": f"p{n}" for n in range(count)}
    made = assigned(workers, workloads, 0)
    sizes = [len(tasks.active) for tasks in made.values()]
    assert max(sizes) - min(sizes) <= 1
    # One that comes takes its share, and the others keep the rest of theirs.
    more = assigned({**workers, "new": "new"}, workloads, 0, made)
    sizes = [len(tasks.active) for tasks in more.values()]
    assert max(sizes) - min(sizes) <= 1
    moved = sum(len(made[name].active - more[name].active) for name in workers)
    assert moved <= max(len(more["new"].active), 0) + count


def test_a_task_goes_where_its_copy_is() -> None:
    workloads = {"0": Workload(3, True)}
    workers = {"a": "p", "b": "q", "c": "r"}
    made = assigned(workers, workloads, 1)
    lost = made.pop("a").active
    after = assigned({"b": "q", "c": "r"}, workloads, 1, made)
    for task in lost:
        (copied,) = (name for name, tasks in made.items() if task in tasks.standby)
        assert task in after[copied].active


def test_stateful_tasks_are_shared_by_themselves() -> None:
    made = assigned({"a": "p", "b": "q"}, {"0": Workload(2, False), "1": Workload(2, True)}, 0)
    for tasks in made.values():
        assert sorted(task.subtopology for task in tasks.active) == ["0", "1"]

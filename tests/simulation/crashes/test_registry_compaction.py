"""Maintenance compacts the registry's topic, and may end between any two steps: what registries know stays the same."""

from contextlib import suppress

import pytest
from support.crashes import Crash, CrashAt
from support.logs import memory_lake, open_lake, quiet

from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.operations.schemas.deleting import decide_delete_subject
from tidelog.operations.schemas.registering import Registration, decide_register
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.operations.schemas.settings import decide_config
from tidelog.retention.maintenance import maintain
from tidelog.schemas.base.model import Schema

CONFIG = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "max.compaction.lag.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "60000",
    "file.delete.delay.ms": "0",
}


def register(log, subject, size):
    wanted = Registration(subject, Schema(f'{{"type":"fixed","name":"f{size}","size":{size}}}'))

    def rule(state):
        found = decide_register(state, wanted)
        return found.version.id, found.records

    return log.decide(rule)


def known(log):
    def at(state):
        subjects = state.subjects(":*:", deleted=True)
        return [one for name in subjects for one in state.versions(name, deleted=True)], state.configs, state.next_id()

    return log.look(at)


def filled():
    """A lake with a topic that has much to compact, its store, its clock, and a registry that has read it all."""
    lake, storage, clock = memory_lake()
    lake.create_topic(SCHEMAS_TOPIC, 1, CONFIG)
    log = RegistryLog(lake)
    log.decide(lambda state: decide_config(state, None, {"compatibility": "NONE"}))
    for i in range(4):
        register(log, f"s{i % 2}", i + 1)
        log.decide(lambda state, i=i: decide_config(state, "s0", {"compatibilityGroup": f"g{i}"}))
    for permanent in (False, True):
        log.decide(lambda state, permanent=permanent: decide_delete_subject(state, "s1", permanent=permanent))
    clock.pass_s(10.0)
    return lake, storage, clock, log


def records(lake):
    return sum(batch.num_rows for batch in lake.topic(SCHEMAS_TOPIC).read(0))


def test_a_compacted_topic_says_the_same():
    lake, storage, clock, log = filled()
    before, many = known(log), records(lake)
    for _ in range(4):  # the last rounds drop tombstones, whose time is over
        maintain(lake)
        clock.pass_s(70.0)
        register(log, "s0", 1)
    assert records(lake) < many / 2
    assert known(log) == known(RegistryLog(open_lake(storage, clock))) == before
    assert register(log, "s0", 9) == 5  # ids of what is gone for good are not given again


def moments():
    """How many steps a maintenance has."""
    lake, storage, _, _ = filled()
    counted = CrashAt(10_000)
    storage.hook = counted
    maintain(lake)
    storage.hook = quiet
    return 10_000 - counted.left


STEPS = moments()


@pytest.mark.parametrize("moment", range(STEPS))
def test_maintenance_that_ends_between_any_two_steps_changes_nothing(moment):
    _, storage, clock, log = filled()
    before = known(log)
    crash = storage.hook = CrashAt(moment)
    with suppress(Crash):
        maintain(open_lake(storage, clock))
    storage.hook = quiet
    assert crash.crashed
    assert known(RegistryLog(open_lake(storage, clock))) == before
    register(log, "s2", 7)
    clock.pass_s(10.0)
    maintain(open_lake(storage, clock))
    assert known(log) == known(RegistryLog(open_lake(storage, clock)))

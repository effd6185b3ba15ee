"""The registry's log: an append lands only at the head that was read, whatever happens around it."""

import threading
from contextlib import suppress

import pyarrow as pa
import pytest
from support.crashes import Crash, CrashAt
from support.logs import memory_lake, open_lake, quiet

from tidelog.log.base.errors import OutcomeUnknownError, StorageUnavailableError
from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.operations.schemas.deleting import decide_delete_subject
from tidelog.operations.schemas.registering import Registration, decide_register
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.operations.schemas.settings import decide_config, decide_no_config
from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.base.model import Schema


def register(log, subject, text):
    def rule(state):
        found = decide_register(state, Registration(subject, Schema(text)))
        return (found.version.id, found.version.version), found.records

    return log.decide(rule)


def fixed(size):
    return f'{{"type":"fixed","name":"f{size}","size":{size}}}'


def all_of(log):
    return log.look(lambda state: [(one.id, one.subject) for s in state.subjects() for one in state.versions(s)])


def test_the_first_record_makes_the_topic():
    lake, _, _ = memory_lake()
    log = RegistryLog(lake)
    assert all_of(log) == []
    assert lake.topics(internal=True) == []
    assert register(log, "a", fixed(1)) == (1, 1)
    assert lake.topic_config(SCHEMAS_TOPIC).cleanup_policy == ("compact",)
    assert lake.topic(SCHEMAS_TOPIC).offsets() == {0: (0, 1)}


def test_a_refusal_appends_nothing():
    lake, _, _ = memory_lake()
    log = RegistryLog(lake)
    with pytest.raises(RegistryError):
        register(log, "a", "{")
    assert lake.topics(internal=True) == []
    register(log, "a", fixed(1))
    assert register(log, "a", fixed(1)) == (1, 1)
    assert lake.topic(SCHEMAS_TOPIC).offsets() == {0: (0, 1)}


def test_registries_over_one_lake_see_each_others_schemas():
    lake, storage, clock = memory_lake()
    logs = [RegistryLog(lake), RegistryLog(open_lake(storage, clock)), RegistryLog(open_lake(storage, clock))]
    ids = [register(logs[i % 3], f"s{i}", fixed(i + 1))[0] for i in range(9)]
    assert ids == list(range(1, 10))
    assert all_of(logs[0]) == all_of(logs[1]) == all_of(logs[2])
    again = RegistryLog(open_lake(storage, clock))
    assert all_of(again) == all_of(logs[0])


def test_a_decision_is_made_again_when_another_registry_was_faster():
    lake, storage, clock = memory_lake()
    other, mine = RegistryLog(open_lake(storage, clock)), RegistryLog(lake)
    register(other, "a", fixed(1))
    seen = []

    def rule(state):
        seen.append(state.next_id())
        if len(seen) == 1:
            register(other, "b", fixed(2))
        found = decide_register(state, Registration("c", Schema(fixed(3))))
        return found.version.id, found.records

    assert mine.decide(rule) == 3
    assert seen == [2, 3]


def test_eight_registries_that_register_at_once_agree():
    """Each registers the same schemas in another order: ids are unique and dense, and the same everywhere."""
    lake, storage, clock = memory_lake()
    lake.ensure_lake()
    answers = [{} for _ in range(8)]
    failures = []

    def work(number):
        try:
            log = RegistryLog(open_lake(storage, clock))
            for i in range(8):
                size = (i * 3 + number) % 8 + 1
                answers[number][size] = register(log, f"s{number % 3}-{size}", fixed(size))[0]
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert all(one == answers[0] for one in answers)
    assert sorted(answers[0].values()) == list(range(1, 9))


def test_a_lost_answer_is_asked_for_again():
    lake, storage, clock = memory_lake()
    log = RegistryLog(lake)
    register(log, "a", fixed(1))
    lost = []

    def lose(method, path, phase):
        if (method, phase) == ("put_if_absent", "after") and "_delta_log" in path and len(lost) < 1:
            lost.append(path)
            raise StorageUnavailableError("timed out")

    storage.hook = lose
    assert register(log, "b", fixed(2)) == (2, 1)
    assert lost
    assert all_of(RegistryLog(open_lake(storage, clock))) == [(1, "a"), (2, "b")]


def test_a_delete_whose_answers_are_lost_is_done_once():
    lake, storage, _ = memory_lake()
    log = RegistryLog(lake)
    register(log, "a", fixed(1))

    def lose(method, path, phase):
        if (method, phase) == ("put_if_absent", "after") and "_delta_log" in path:
            raise StorageUnavailableError("timed out")

    storage.hook = lose
    try:
        deleted = log.decide(lambda state: decide_delete_subject(state, "a"))
    except OutcomeUnknownError:
        deleted = [1]
    storage.hook = quiet
    assert deleted == [1]
    assert log.look(lambda state: (state.subjects(), state.subjects(deleted=True))) == ([], ["a"])


@pytest.mark.parametrize("moment", range(20))
def test_a_registry_that_ends_between_any_two_steps_leaves_the_log_whole(moment):
    lake, storage, clock = memory_lake()
    register(RegistryLog(lake), "a", fixed(1))
    crash = storage.hook = CrashAt(moment)
    answered = None
    with suppress(Crash):
        answered = register(RegistryLog(open_lake(storage, clock)), "b", fixed(2))
    storage.hook = quiet
    after = RegistryLog(open_lake(storage, clock))
    assert all_of(after) in ([(1, "a")], [(1, "a"), (2, "b")])
    assert (answered is None) is crash.crashed or all_of(after)[-1] == (2, "b")
    assert register(after, "b", fixed(2)) == (2, 1)
    assert register(after, "c", fixed(3)) == (3, 1)


def test_a_store_that_never_answers_is_reported():
    lake, storage, _ = memory_lake()
    log = RegistryLog(lake)
    register(log, "a", fixed(1))

    def down(method, path, phase):
        if "_delta_log" in path and (method, phase) != ("put_if_absent", "before"):
            raise StorageUnavailableError("timed out")

    real = log.known
    assert real(lambda state: state.next_id()) == 2
    storage.hook = down
    with pytest.raises((OutcomeUnknownError, StorageUnavailableError)):
        register(log, "b", fixed(2))
    storage.hook = quiet
    assert register(log, "b", fixed(2)) == (2, 1)


def test_what_is_known_is_given_while_another_thread_decides():
    lake, _, _ = memory_lake()
    log = RegistryLog(lake)
    register(log, "a", fixed(1))
    deciding, go_on = threading.Event(), threading.Event()

    def slow(state):
        deciding.set()
        go_on.wait()
        return None, ()

    thread = threading.Thread(target=log.decide, args=(slow,))
    thread.start()
    deciding.wait()
    try:
        assert log.known(lambda state: state.by_id(1)) == Schema(fixed(1))
    finally:
        go_on.set()
        thread.join()


def test_what_is_known_is_asked_again_when_it_changed_meanwhile():
    lake, _, _ = memory_lake()
    log = RegistryLog(lake)
    register(log, "a", fixed(1))
    asked = []

    def at(state):
        asked.append(1)
        if len(asked) == 1:
            raise RuntimeError("dictionary changed size during iteration")
        return state.next_id()

    assert log.known(at) == 2


def test_records_under_another_registrys_keys_are_taken_away():
    """Compaction goes by bytes: what is written in our form must not leave an older one under another form."""
    lake, _, _ = memory_lake()
    log = RegistryLog(lake)
    register(log, "a", fixed(1))
    foreign = b'{"magic":0,"keytype":"CONFIG","subject":null}'
    table = pa.table({"key": [foreign], "value": [b'{"compatibilityLevel":"FULL"}']})
    lake.topic(SCHEMAS_TOPIC).append(table)
    assert log.look(lambda state: state.configs) == {None: {"compatibilityLevel": "FULL"}}
    log.decide(lambda state: decide_no_config(state, None))
    assert log.look(lambda state: state.configs) == {}
    rows = [row for batch in lake.topic(SCHEMAS_TOPIC).read(0) for row in batch.to_pylist()]
    assert [(row["key"], row["value"]) for row in rows[2:]] == [
        (foreign, None),
        (b'{"keytype":"CONFIG","magic":0}', None),
    ]
    log.decide(lambda state: decide_config(state, None, {"compatibility": "NONE"}))
    assert lake.topic(SCHEMAS_TOPIC).offsets() == {0: (0, 5)}

"""What writers of typed topics learn of a lake's registry, which writes its topic itself."""

import base64
import threading

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import Calls, memory_lake, open_lake
from support.value_subjects import Subjects, avro_record

from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.log.delta.written_schemas import WrittenSchema
from tidelog.log.lake import Lake
from tidelog.log.value_schemas import ANSWERS_COUNT_S, SubjectReader, SubjectVersions
from tidelog.schemas.base.errors import RegistryError

A, B, C = avro_record(a="int"), avro_record(a="int", b=["null", "int"]), avro_record(c="string")


def reader(lake: Lake) -> SubjectReader:
    assert isinstance(lake.value_schemas, SubjectReader)
    return lake.value_schemas


def put(lake: Lake, key: dict[str, object] | bytes, value: dict[str, object] | bytes | None) -> None:
    """A record of the topic by hand, as another registry may have written it."""
    pair = [None if part is None else part if isinstance(part, bytes) else orjson.dumps(part) for part in (key, value)]
    table = pa.table({"key": pa.array(pair[:1], pa.binary()), "value": pa.array(pair[1:], pa.binary())})
    lake.topic(SCHEMAS_TOPIC).append(table)


def version(subject: str, number: int, id_: int, text: str = A, **more: object) -> tuple[dict[str, object], ...]:
    """The key and the value of a version, as Confluent's registry writes them."""
    key = {"keytype": "SCHEMA", "subject": subject, "version": number, "magic": 1}
    return key, {"subject": subject, "version": number, "id": id_, "schema": text, "deleted": False, **more}


def test_a_lake_without_a_registry_says_so() -> None:
    lake, _, _ = memory_lake()
    found = reader(lake)
    assert found.schema(1, "s") is None
    assert found.newest("s") is None
    assert found.why_not(("s", 1)) == "the lake has no topic '_schemas', where a registry keeps its schemas"
    assert SCHEMAS_TOPIC not in lake.topics(internal=True)  # looking makes nothing


def test_a_schema_is_found_by_its_id_and_by_its_guid() -> None:
    lake, _, _ = memory_lake()
    subjects = Subjects(lake).no_rules()
    first, second = subjects.register("s", A), subjects.register("s", B)
    found = reader(lake)
    guid = subjects.guid(first)
    wanted = WrittenSchema(first, "avro", A, (), "s", 1, guid.hex())
    assert found.schema(first, "s") == found.schema(guid, "s") == wanted
    newest = found.newest("s")
    assert newest is not None
    assert (newest.id, newest.version, newest.text) == (second, 2, B)


def test_what_the_subject_lacks_is_asked_for_once_in_a_while() -> None:
    calls = Calls()
    lake, _, clock = memory_lake(calls)
    subjects = Subjects(lake)
    other = subjects.register("other", A)
    found = reader(lake)
    assert found.schema(other, "s") is None
    assert found.why_not(("s", other)) == "the registry has no subject 's'"
    calls.take()
    assert found.schema(other, "s") is None
    assert calls.take() == []
    subjects.register("s", A)
    assert found.schema(other, "s") is None  # for some seconds still
    clock.pass_s(ANSWERS_COUNT_S)
    now = found.schema(other, "s")
    assert now is not None
    assert now.text == A
    assert found.schema(77, "s") is None
    assert found.why_not(("s", 77)) == "subject 's' has no schema with the id 77"
    assert found.schema(bytes(16), "s") is None
    assert found.why_not(("s", bytes(16))) == f"subject 's' has no schema with the guid {bytes(16).hex()}"


def test_what_was_registered_since_is_found_without_reading_all_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, storage, clock = memory_lake()
    subjects = Subjects(open_lake(storage, clock)).no_rules()
    found = reader(lake)
    first = subjects.register("s", A)
    assert found.schema(first, "s") is not None
    taken: list[int] = []
    take = SubjectVersions.take
    monkeypatch.setattr(SubjectVersions, "take", lambda *record: (taken.append(record[3]), take(*record))[1])
    second = subjects.register("s", B)
    assert found.schema(second, "s") is not None
    assert taken == [2]


def test_a_softly_deleted_version_is_still_read_and_never_newest() -> None:
    lake, _, clock = memory_lake()
    subjects = Subjects(lake).no_rules()
    first, second = subjects.register("s", A), subjects.register("s", B)
    subjects.delete("s", 2)
    found = reader(lake)
    newest, gone = found.newest("s"), found.schema(second, "s")
    assert newest is not None
    assert gone is not None
    assert (newest.id, gone.text) == (first, B)
    subjects.delete("s")
    clock.pass_s(ANSWERS_COUNT_S)
    assert found.newest("s") is None
    assert found.schema(first, "s") is not None
    subjects.delete("s", permanent=True)
    assert reader(open_lake(lake.storage, clock)).schema(first, "s") is None


def test_references_come_with_their_texts_those_first_that_others_need() -> None:
    lake, _, _ = memory_lake()
    subjects = Subjects(lake)
    address = '{"type":"record","name":"Address","namespace":"x","fields":[{"name":"zip","type":"string"}]}'
    person = '{"type":"record","name":"Person","namespace":"x","fields":[{"name":"home","type":"Address"}]}'
    order = '{"type":"record","name":"Order","namespace":"x","fields":[{"name":"by","type":"x.Person"}]}'
    subjects.register("address", address)
    subjects.register("person", person, references=[("x.Address", "address", 1)])
    number = subjects.register("order", order, references=[("x.Person", "person", 1)])
    found = reader(lake).schema(number, "order")
    assert found is not None
    assert found.references == (("x.Address", address), ("x.Person", person))


def test_subjects_of_contexts_and_their_references() -> None:
    lake, _, _ = memory_lake()
    subjects = Subjects(lake)
    address = '{"type":"record","name":"Address","fields":[{"name":"zip","type":"string"}]}'
    order = '{"type":"record","name":"Order","fields":[{"name":"to","type":"Address"}]}'
    subjects.register("address", avro_record(another="int"))  # of the default context, with the same name
    subjects.register(":.eu:address", address)
    number = subjects.register(":.eu:order", order, references=[("Address", "address", 1)])
    found = reader(lake).schema(number, ":.eu:order")
    assert found is not None
    assert (found.subject, found.references) == (":.eu:order", (("Address", address),))
    assert reader(lake).schema(number, "order") is None


def test_an_alias_leads_to_its_subject_and_keeps_its_name() -> None:
    lake, _, clock = memory_lake()
    subjects = Subjects(lake)
    number = subjects.register("orders-value", A)
    subjects.alias("short", "orders-value")
    found = reader(lake).schema(number, "short")
    assert found is not None
    assert (found.subject, found.text) == ("short", A)
    subjects.alias("short", "nothing")
    clock.pass_s(ANSWERS_COUNT_S)
    assert reader(open_lake(lake.storage, clock)).schema(number, "short") is None


def test_an_alias_in_a_context_names_a_subject_of_it() -> None:
    lake, _, _ = memory_lake()
    subjects = Subjects(lake)
    subjects.register("orders", avro_record(another="int"))
    number = subjects.register(":.eu:orders", A)
    subjects.alias(":.eu:short", "orders")
    found = reader(lake).schema(number, ":.eu:short")
    assert found is not None
    assert (found.subject, found.text) == (":.eu:short", A)


def test_a_topic_that_was_made_again_is_read_from_its_start() -> None:
    lake, _, clock = memory_lake()
    number = Subjects(lake).register("s", A)
    found = reader(lake)
    assert found.schema(number, "s") is not None
    lake.delete_topic(SCHEMAS_TOPIC)
    clock.pass_s(ANSWERS_COUNT_S)
    assert found.schema(number + 1, "s") is None
    Subjects(lake).register("t", C)
    clock.pass_s(ANSWERS_COUNT_S)
    assert found.schema(number, "s") is None
    new = found.schema(number, "t")
    assert new is not None
    assert new.text == C


@pytest.mark.parametrize(
    ("said", "guid"),
    [
        ({"md5": base64.b64encode(bytes(range(16))).decode()}, bytes(range(16))),
        ({"guid": "00010203-0405-0607-0809-0a0b0c0d0e0f", "md5": "no"}, bytes(range(16))),
    ],
)
def test_a_record_says_its_guid(said: dict[str, object], guid: bytes) -> None:
    lake, _, _ = memory_lake()
    lake.create_topic(SCHEMAS_TOPIC, 1, {"cleanup.policy": "compact"})
    put(lake, *version("s", 1, 4, **said))
    found = reader(lake).schema(guid, "s")
    assert found is not None
    assert (found.id, found.guid) == (4, guid.hex())


def test_what_is_none_of_a_registrys_records_is_passed_over() -> None:
    lake, _, _ = memory_lake()
    lake.create_topic(SCHEMAS_TOPIC, 1, {"cleanup.policy": "compact"})
    put(lake, b"no JSON", b"")
    put(lake, b"[]", b"{}")
    put(lake, {"keytype": "NOOP", "magic": 0}, None)
    put(lake, {"keytype": "SCHEMA", "subject": 7, "version": 1}, {})
    put(lake, {"keytype": "SCHEMA", "subject": "s", "version": "1"}, {})
    put(lake, {"keytype": "DELETE_SUBJECT", "subject": "s"}, {"version": "x"})
    put(lake, {"keytype": "CONFIG", "subject": "s"}, {"alias": 7})
    put(lake, *version("s", 1, 0))
    put(lake, *version("s", 2, 5)[:1], b"no JSON")
    put(lake, *version("s", 3, 6, schemaType="THRIFT"))
    put(lake, *version("s", 4, 7, references=[{"name": "x", "subject": "gone", "version": 1}]))
    put(lake, *version("s", 5, 8))
    found = reader(lake)
    assert found.schema(6, "s") is None
    assert found.why_not(("s", 6)) == "version 3 of subject 's' has the type THRIFT"
    assert found.schema(7, "s") is None
    assert found.why_not(("s", 7)) == "there is no version 1 of subject 'gone', which it needs"
    good = found.schema(8, "s")
    assert good is not None
    assert good.text == A


def test_references_in_a_circle_end() -> None:
    lake, _, _ = memory_lake()
    lake.create_topic(SCHEMAS_TOPIC, 1, {"cleanup.policy": "compact"})
    put(lake, *version("s", 1, 1, references=[{"name": "t", "subject": "t", "version": 1}]))
    put(lake, *version("t", 1, 2, C, references=[{"name": "s", "subject": "s", "version": 1}]))
    found = reader(lake).schema(1, "s")
    assert found is not None
    assert dict(found.references) == {"t": C, "s": A}


def test_a_version_that_was_written_again_meanwhile_is_read_where_it_is_now() -> None:
    lake, _, _ = memory_lake()
    lake.create_topic(SCHEMAS_TOPIC, 1, {"cleanup.policy": "compact,delete"})
    put(lake, *version("s", 1, 1))
    found = reader(lake)
    assert found.newest("s") is not None
    put(lake, *version("s", 1, 1))
    lake.delete_records(SCHEMAS_TOPIC, {0: 1})  # as compaction takes the older of the two away
    now = found.schema(1, "s")
    assert now is not None
    assert now.text == A


def test_many_threads_learn_the_same() -> None:
    lake, _, _ = memory_lake()
    number = Subjects(lake).register("s", A)
    found, answers = reader(lake), list[WrittenSchema | None]()
    threads = [threading.Thread(target=lambda: answers.append(found.schema(number, "s"))) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(answers) == 8
    assert {one.text for one in answers if one is not None} == {A}
    assert None not in answers


_SUBJECTS = st.sampled_from(["s", "t", ":.c:s"])
_STEPS = st.one_of(
    st.tuples(st.just("register"), _SUBJECTS, st.sampled_from([A, B, C])),
    st.tuples(st.just("delete"), _SUBJECTS, st.sampled_from([None, 1, 2])),
    st.tuples(st.just("delete for good"), _SUBJECTS, st.sampled_from([None, 1, 2])),
    st.tuples(st.just("look"), _SUBJECTS, st.integers(1, 4)),
)


@given(st.lists(_STEPS, max_size=12))
def test_readers_know_what_the_registry_knows(steps: list[tuple[str, str, str | int | None]]) -> None:
    lake, storage, clock = memory_lake()
    subjects = Subjects(lake).no_rules()
    followed = reader(open_lake(storage, clock))
    for what, subject, given_ in steps:
        try:
            if what == "register":
                subjects.register(subject, str(given_))
            elif what == "look":
                followed.schema(given_, subject)  # type: ignore[arg-type]
            else:
                subjects.delete(subject, given_, permanent=what == "delete for good")  # type: ignore[arg-type]
        except RegistryError:
            pass
        clock.pass_s(ANSWERS_COUNT_S)
    for name in ("s", "t", ":.c:s"):
        known = subjects.log.look(lambda state, name=name: state.versions(name, deleted=True))
        wanted = {one.id: one.schema.text for one in known}
        live = [one.id for one in known if not one.deleted]
        for found in (followed, reader(open_lake(storage, clock))):
            found.newest(name)  # which reads on: what was known before stays known until then
            seen = {number: one.text for number in range(1, 5) if (one := found.schema(number, name)) is not None}
            assert seen == wanted
            newest = found.newest(name)
            assert (None if newest is None else newest.id) == (live[-1] if live else None)

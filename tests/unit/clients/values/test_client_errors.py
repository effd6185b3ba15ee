"""KafkaError, KafkaException and TopicPartition: the shapes that programs written for confluent-kafka rely on."""

import pickle

import pytest

from tidelog.clients.values.error_codes import NAMES
from tidelog.clients.values.errors import (
    KafkaError,
    KafkaException,
    KeyDeserializationError,
    SerializationError,
    ValueSerializationError,
    invalid_argument,
    kafka_error,
)
from tidelog.clients.values.partitions import TopicPartition
from tidelog.log.base import errors

# Taken from librdkafka 2.16 and Kafka 4.1, some of each kind.
CODES = {
    "_BAD_MSG": -199,
    "_MSG_TIMED_OUT": -192,
    "_PARTITION_EOF": -191,
    "_UNKNOWN_PARTITION": -190,
    "_INVALID_ARG": -186,
    "_TIMED_OUT": -185,
    "_QUEUE_FULL": -184,
    "_STATE": -172,
    "_NO_OFFSET": -168,
    "_VALUE_SERIALIZATION": -161,
    "_PURGE_QUEUE": -152,
    "_FATAL": -150,
    "_MAX_POLL_EXCEEDED": -147,
    "_ASSIGNMENT_LOST": -142,
    "_AUTO_OFFSET_RESET": -140,
    "_DESTROY_BROKER": -137,
    "UNKNOWN": -1,
    "NO_ERROR": 0,
    "OFFSET_OUT_OF_RANGE": 1,
    "UNKNOWN_TOPIC_OR_PART": 3,
    "MSG_SIZE_TOO_LARGE": 10,
    "TOPIC_EXCEPTION": 17,
    "ILLEGAL_GENERATION": 22,
    "TOPIC_ALREADY_EXISTS": 36,
    "INVALID_REPLICATION_FACTOR": 38,
    "NON_EMPTY_GROUP": 68,
    "FENCED_INSTANCE_ID": 82,
    "SNAPSHOT_NOT_FOUND": 98,
    "INCONSISTENT_TOPIC_ID": 103,
    "OFFSET_MOVED_TO_TIERED_STORAGE": 109,
    "SHARE_SESSION_LIMIT_REACHED": 133,
}


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_constants(name, code):
    assert getattr(KafkaError, name) == code
    assert KafkaError(code).name() == name


def test_every_code_of_the_two_ranges_has_one_name():
    assert set(NAMES) == {*range(-199, -136), *range(-1, 134)}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (KafkaError._TIMED_OUT, "Local: Timed out"),
        (KafkaError._MSG_TIMED_OUT, "Local: Message timed out"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "Broker: Unknown topic or partition"),
        (KafkaError.NO_ERROR, "Success"),
        (4711, "Err-4711?"),
    ],
)
def test_words_of_a_code(code, words):
    assert KafkaError(code).str() == words


def test_an_error_tells_what_it_was_given():
    error = KafkaError(KafkaError._TIMED_OUT, "too slow", True, True, True)
    assert (error.code(), error.name(), error.str()) == (-185, "_TIMED_OUT", "too slow")
    assert error.fatal()
    assert error.retriable()
    assert error.txn_requires_abort()
    assert str(error) == 'KafkaError{FATAL,code=_TIMED_OUT,val=-185,str="too slow"}'
    plain = KafkaError(3, "boo")
    assert not plain.fatal()
    assert not plain.retriable()
    assert not plain.txn_requires_abort()
    assert repr(plain) == 'KafkaError{code=UNKNOWN_TOPIC_OR_PART,val=3,str="boo"}'
    assert KafkaError(4711).name() == "ERR_4711?"


def test_errors_compare_by_code_with_numbers_and_with_one_another():
    assert KafkaError(3, "a") == 3
    assert KafkaError(3, "a") == KafkaError(3, "b")
    assert KafkaError(3) != 4
    assert KafkaError(3) != "UNKNOWN_TOPIC_OR_PART"
    assert KafkaError(3) < 4 <= KafkaError(4)
    assert KafkaError(5) > KafkaError(4) >= 4
    assert len({KafkaError(3, "a"), KafkaError(3, "b"), KafkaError(4)}) == 2
    with pytest.raises(TypeError):
        _ = KafkaError(3) < "4"


def test_errors_travel_between_processes():
    error = pickle.loads(pickle.dumps(KafkaException(KafkaError(3, "boo", retriable=True)))).args[0]
    assert (error.code(), error.str(), error.retriable()) == (3, "boo", True)


@pytest.mark.parametrize(
    ("error", "code", "retriable"),
    [
        (errors.UnknownTopicError("gone"), KafkaError.UNKNOWN_TOPIC_OR_PART, False),
        (errors.ContendedLogError("busy"), KafkaError.REQUEST_TIMED_OUT, True),
        (errors.OutcomeUnknownError("silence", request_id="r"), KafkaError.REQUEST_TIMED_OUT, True),
        (errors.LakeNotFoundError("where"), KafkaError._INVALID_ARG, False),
        (errors.LakeFileLostError("where"), KafkaError._INVALID_ARG, False),
        (errors.TidelogError("?"), KafkaError.UNKNOWN, False),
    ],
)
def test_an_error_of_the_log_becomes_kafkas(error, code, retriable):
    made = kafka_error(error)
    assert (made.code(), made.str(), made.retriable(), made.fatal()) == (code, str(error), retriable, False)
    assert kafka_error(error, fatal=True).fatal()


def test_every_error_of_the_log_has_a_code_with_a_name():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 30
    assert [kind for kind in kinds if kind.kafka_code not in NAMES] == []


def test_exceptions_of_one_record_carry_its_cause():
    cause = ValueError("no such thing")
    error = KeyDeserializationError(cause, "message")
    assert isinstance(error, SerializationError)
    assert isinstance(error, KafkaException)
    assert (error.code, error.name) == (KafkaError._KEY_DESERIALIZATION, "_KEY_DESERIALIZATION")
    assert (error.exception, error.kafka_message) == (cause, "message")
    assert error.args[0].str() == "no such thing"
    assert ValueSerializationError(cause).code == KafkaError._VALUE_SERIALIZATION
    assert invalid_argument("no").args[0] == KafkaError._INVALID_ARG


# --- TopicPartition ----------------------------------------------------------------------------------------


def test_a_partition_has_defaults_and_shows_itself():
    partition = TopicPartition("t")
    assert (partition.partition, partition.offset, partition.metadata, partition.leader_epoch) == (
        -1,
        -1001,
        None,
        None,
    )
    assert partition.error is None
    full = TopicPartition("t", 1, 5, metadata="m", leader_epoch=3)
    assert str(full) == "TopicPartition{topic=t,partition=1,offset=5,leader_epoch=3,error=None}"
    assert full.metadata == "m"
    assert TopicPartition("t", 1, 5, "m", -1).leader_epoch is None


def test_partitions_are_equal_and_sort_by_topic_and_number_alone():
    assert TopicPartition("t", 1, 5) == TopicPartition("t", 1, 9)
    assert hash(TopicPartition("t", 1, 5)) == hash(TopicPartition("t", 1, 9))
    assert TopicPartition("t", 1) != TopicPartition("t", 2)
    assert TopicPartition("t", 1) != ("t", 1)
    shuffled = [TopicPartition("b", 0), TopicPartition("a", 2), TopicPartition("a", 1)]
    assert [(p.topic, p.partition) for p in sorted(shuffled)] == [("a", 1), ("a", 2), ("b", 0)]
    assert TopicPartition("a") <= TopicPartition("a")
    with pytest.raises(TypeError):
        _ = TopicPartition("a") < 3


@pytest.mark.parametrize("wrong", [(None,), (1,), (b"t",), ("t", "0"), ("t", 0, "5"), ("t", 0, None)])
def test_a_partition_of_wrong_types_is_refused(wrong):
    with pytest.raises(TypeError):
        TopicPartition(*wrong)

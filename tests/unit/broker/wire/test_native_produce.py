"""What native code reads of a request of one batch is what Python reads of it, and the answer has Python's bytes."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import one_in
from support.native import native_produce
from support.produce_requests import batch, encoded_produce
from support.strange_requests import Strange

from tidelog.broker.base.calls import Peer
from tidelog.broker.base.cluster_view import rack_of
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.produce.request import ProduceRequest
from tidelog.broker.records.batches import BatchHeader, header_of
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.errors import MalformedRequestError, UnsupportedVersionError
from tidelog.broker.wire.frames import LENGTH, framed
from tidelog.broker.wire.frames import header_of as frames_header
from tidelog.broker.wire.plain_produce import NATIVE, plain_produce, topic_id
from tidelog.broker.wire.produce_answer import ProducedPartition, produce_answer
from tidelog.log.base.errors import UnknownPartitionError
from tidelog.log.base.request_ids import RequestId

LAST = OFFERED[ApiKey.PRODUCE].last
VERSIONS = pytest.mark.parametrize("version", range(9, LAST + 1))
PEER = Peer(host="10.0.0.7", port=7)


@pytest.fixture(scope="module")
def reader():
    native_produce()
    return NATIVE.Reader(LAST, topic_id, rack_of)


def frame(version, body, *, client=b"client,zone=z1", correlation_id=77):
    head = ApiKey.PRODUCE.to_bytes(2) + version.to_bytes(2) + correlation_id.to_bytes(4, signed=True)
    head += (-1 if client is None else len(client)).to_bytes(2, signed=True) + (client or b"") + b"\0"
    return LENGTH.pack(len(head + body)) + head + body


def usual(version, data=None, topic="t", partition=3, **given):
    named = topic_id(b"i" * 16) if version >= 13 else topic
    return encoded_produce(version, {named: {partition: batch(b"v") if data is None else data}}, **given)


def read(reader, data, ended=lambda request: None):
    """As a connection has it: the frame is at the beginning of a larger buffer."""
    return reader.read(memoryview(data + b"rest"), len(data), 5.0, PEER, ended)


def read_in_python(data):
    """(header, body) of a request that Python's ways would take as one plain batch; None for others."""
    try:
        header = frames_header(memoryview(data)[LENGTH.size :])
        body = plain_produce(header.version, memoryview(data)[LENGTH.size :][header.end :])
    except (MalformedRequestError, UnsupportedVersionError):
        return None
    return None if body is None else (header, body)


def same(request, data):
    """Whether what is read is what Python reads."""
    header, body = read_in_python(data)
    ((ref, ((partition, records),)),) = body.topics
    found = request.only
    assert request.header.key is header.key
    assert (request.version, request.correlation_id) == (header.version, header.correlation_id)
    assert (request.client_id, request.rack) == (header.client_id, rack_of(header.client_id))
    assert (request.acks, request.size, request.came_s) == (body.acks, len(data) - LENGTH.size, 5.0)
    assert (found.topic, found.partition, found.batch) == (ref, partition, bytes(records))
    assert (request.topic, request.partition) == (ref, partition)
    assert found.deadline_s == 5.0 + body.timeout_ms / 1000
    expected = header_of(records)
    names = {*BatchHeader._fields, "codec", "is_transactional", "is_control", "is_log_append_time"}
    assert {name: getattr(found.header, name) for name in names} == {name: getattr(expected, name) for name in names}
    assert found.sequence == (expected.producer_epoch, expected.base_sequence, expected.count)
    assert (found.request, found.acks, found.transactional_id, found.begins) == (request, body.acks, "", False)
    assert len(records) == expected.size
    assert expected.magic == 2
    return True


@VERSIONS
@given(
    topic=st.text(max_size=100),
    partition=st.integers(0, 2**31 - 1),
    values=st.lists(st.binary(max_size=9000), min_size=1, max_size=3),
    client=st.none() | st.text(max_size=100),
    acks=st.sampled_from((1, -1)),
    timeout_ms=st.integers(-(2**31), 2**31 - 1),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
)
def test_usual_requests_are_read(reader, version, topic, partition, values, client, acks, timeout_ms, correlation_id):
    body = usual(version, batch(*values), topic, partition, acks=acks, timeout_s=timeout_ms / 1000)
    client = None if client is None else client.encode()
    data = frame(version, body, client=client, correlation_id=correlation_id)
    request = read(reader, data)
    if len(topic.encode()) > 126 or (client is not None and len(client) > 256):
        assert request is None
        return
    assert same(request, data)
    assert read(reader, data[:-1]) is None
    assert read(reader, data + b"\0") is None


@VERSIONS
@one_in(4)
@given(seed=st.integers(0, 2**32))
def test_whatever_is_read_is_what_python_reads(reader, version, seed):
    """Mutated everywhere, and with a length that fits, so that more than that is looked at."""
    strange = Strange(seed)
    data = frame(version, usual(version, batch(b"v" * (seed % 300), producer=(7, 0, 3))))
    for _ in range(40):
        mutated = strange.mutated(data)
        for sent in (mutated, LENGTH.pack(max(0, len(mutated) - LENGTH.size)) + mutated[LENGTH.size :]):
            request = read(reader, sent)
            assert request is None or same(request, sent)


@VERSIONS
def test_each_byte_that_is_another_is_read_as_python_reads_it(reader, version):
    data = frame(version, usual(version))
    seen = 0
    for at in range(len(data)):
        for byte in (0, 1, 2, 3, 0x7F, 0x80, 0xFF):
            sent = data[:at] + bytes((byte,)) + data[at + 1 :]
            request = read(reader, sent)
            assert request is None or same(request, sent)
            seen += request is not None
    assert seen > 100


@VERSIONS
def test_what_is_not_usual_is_left_to_others(reader, version):
    names = [topic_id(b"i" * 16), topic_id(b"j" * 16)] if version >= 13 else ["t", "u"]
    bodies = {
        "usual": usual(version),
        "no answer": usual(version, acks=0),
        "a transaction": usual(version, transactional_id="x"),
        "of a transaction": usual(version, batch(b"v", producer=(7, 0, 0), transactional=True)),
        "no partition's": usual(version, partition=-1),
        "no batch": usual(version, b""),
        "a torn batch": usual(version, batch(b"v")[:-1]),
        "two batches": usual(version, batch(b"v") * 2),
        "two partitions": encoded_produce(version, {names[0]: {0: batch(b"v"), 1: batch(b"v")}}),
        "two topics": encoded_produce(version, {name: {0: batch(b"v")} for name in names}),
    }
    assert [name for name, body in bodies.items() if read(reader, frame(version, body)) is not None] == ["usual"]
    assert read(reader, frame(8, encoded_produce(8, {"t": {0: batch(b"v")}}))) is None
    assert read(reader, frame(LAST + 1, usual(version))) is None
    assert read(reader, frame(version, usual(version), client=b"\xff")) is None


def test_more_names_than_are_remembered_are_read_all_the_same(reader):
    for number in range(3000):
        data = frame(9, usual(9, topic=f"topic-{number}"), client=b"client-%d" % number)
        assert read(reader, data).topic == f"topic-{number}"


@VERSIONS
@given(
    offset=st.integers(0, 2**63 - 1),
    append_ms=st.none() | st.integers(0, 2**62),
    log_start=st.integers(-1, 2**62),
    topic=st.text(min_size=1, max_size=60),
)
def test_the_answer_has_the_bytes_of_pythons(reader, version, offset, append_ms, log_start, topic):
    ended = []
    request = read(reader, frame(version, usual(version, topic=topic)), ended.append)
    if request is None:
        assert len(topic.encode()) > 126
        return
    request.only.landed(offset, append_ms, log_start)
    assert ended == [request]
    assert request.only is None
    partition = ProducedPartition(3, 0, offset, -1 if append_ms is None else append_ms, log_start)
    expected = framed(request.header, [produce_answer(version, [(request.topic, [partition])])])
    assert request.answer() == b"".join(expected)
    assert b"".join(request.framed()) == b"".join(expected)


def test_a_refusal_is_kept_and_its_answer_framed(reader):
    ended = []
    request = read(reader, frame(9, usual(9)), ended.append)
    error = UnknownPartitionError("there is none")
    request.only.refused(error)
    assert (ended, request.refusal) == ([request], error)
    request.pieces = [b"body"]
    assert request.framed() == framed(request.header, [b"body"])


def test_its_batch_knows_its_request_as_lines_of_the_log_and_metrics_do(reader):
    request = read(reader, frame(9, usual(9)))
    assert request.only.request.id == RequestId("10.0.0.7", 7, "client,zone=z1", 77)
    assert not request.only.is_refused("t")
    assert {name for name in ProduceRequest.__slots__ if not name.startswith("_")} - {"topics"} <= {*dir(request)}
    meter = BrokerMeter().api("PRODUCE")
    request.count(meter, 50, 6.0)
    counted = SimpleNamespace(**{name: getattr(meter, name) for name in ("requests", "bytes_in", "bytes_out")})
    assert (counted.requests[9], counted.bytes_in, counted.bytes_out) == (1, request.size, 50)
    assert (meter.queued.count, meter.handled.count, meter.total.count) == (1, 1, 1)
    assert meter.total.quantiles([0.5])[0.5] == pytest.approx(1000, rel=0.2)

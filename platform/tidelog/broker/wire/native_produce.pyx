# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A Produce request of one record batch in native code, from the bytes of its frame to those of its answer.

It is read here only if nothing about it is unusual; `tidelog.broker.wire.plain_produce` and kio read all others, and
what is read here is what they read. Bytes are a client's: no length is believed before it was compared with the end.
Source: `ProduceRequest.json`, `ProduceResponse.json`; headers: KIP-482; record batches: KIP-98.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.frames import Header, framed
from tidelog.log.base.request_ids import RequestId


cdef extern from *:
    """
    #ifndef TIDELOG_SOURCE
    #define TIDELOG_SOURCE ""
    #endif
    """
    const char *TIDELOG_SOURCE


# The digest of what this was built from.
SOURCE = TIDELOG_SOURCE.decode()

cdef enum:
    TOPIC_IDS_SINCE = 13
    FIRST = 9
    # Of a frame: its length, API key, version, correlation id, length of the client id.
    LENGTH = 4
    HEAD = 14
    # Of a batch: all before its records, and all before what its length counts.
    BATCH_HEAD = 61
    BATCH_START = 12
    MAGIC = 2
    TRANSACTIONAL = 0x10
    CONTROL = 0x20
    LOG_APPEND_TIME = 0x08
    CODEC = 0x07
    # A topic's name, with its length and 1 in one byte.
    MOST_NAME = 126
    # Names and ids that are remembered, and the longest of them.
    MOST_REMEMBERED = 1024
    MOST_TEXT = 256


cdef class Batch:
    """See the .pyi."""

    cdef readonly Request request
    cdef readonly object topic
    cdef readonly bytes batch
    cdef readonly double deadline_s
    cdef readonly int32_t partition
    cdef readonly int64_t base_offset, first_timestamp, max_timestamp, producer_id
    cdef readonly int32_t leader_epoch, attributes, last_offset_delta, producer_epoch, base_sequence, count
    cdef readonly uint32_t crc

    @property
    def header(self):
        return self

    @property
    def size(self):
        return PyBytes_GET_SIZE(self.batch)

    @property
    def magic(self):
        return MAGIC

    @property
    def codec(self):
        return self.attributes & CODEC

    @property
    def is_transactional(self):
        return False

    @property
    def is_control(self):
        return (self.attributes & CONTROL) != 0

    @property
    def is_log_append_time(self):
        return (self.attributes & LOG_APPEND_TIME) != 0

    @property
    def transactional_id(self):
        return ""

    @property
    def begins(self):
        return False

    @property
    def acks(self):
        return self.request.acks

    @property
    def sequence(self):
        return self.producer_epoch, self.base_sequence, self.count

    def is_refused(self, name):
        return False

    def landed(self, int64_t offset, append_ms, int64_t log_start_offset):
        cdef Request request = self.request
        request.offset, request.log_start_offset = offset, log_start_offset
        request.append_ms = -1 if append_ms is None else append_ms
        request.end()

    def refused(self, error):
        self.request.refusal = error
        self.request.end()


cdef class Request:
    """See the .pyi."""

    cdef readonly int version
    cdef readonly int32_t correlation_id
    cdef readonly object client_id, peer, rack, topic, refusal
    cdef readonly int acks
    cdef readonly Py_ssize_t size
    cdef readonly double came_s
    cdef readonly Batch only
    cdef readonly int32_t partition
    cdef public bint is_done
    cdef int64_t offset, append_ms, log_start_offset
    cdef object ended
    cdef bytes named
    cdef public object connection, error, pieces

    lets_follow = True
    has_begun = True
    writes = None
    task = None
    throttled = None

    cdef end(self):
        self.only = None  # each has the other until then
        self.ended(self)

    @property
    def id(self):
        return RequestId(self.peer.host, self.peer.port, self.client_id, self.correlation_id)

    @property
    def header(self):
        return Header(ApiKey.PRODUCE, self.version, self.correlation_id, self.client_id, 0)

    def framed(self):
        if self.pieces is not None:
            return framed(self.header, self.pieces)
        return [self.answer()]

    def count(self, meter, bytes_out, double now_s):
        meter.single(self.version, self.size, bytes_out, now_s - self.came_s, now_s)

    def answer(self):
        cdef bint by_id = self.version >= TOPIC_IDS_SINCE
        cdef Py_ssize_t name = PyBytes_GET_SIZE(self.named), size
        # Length, correlation id, no tagged fields, topics; the name's length; partitions; the partition; no errors of
        # records, no message, no tagged fields of it; nor of the topic; throttle time; nor of all.
        size = 4 + 4 + 1 + 1 + (not by_id) + name + 1 + 30 + 3 + 1 + 4 + 1
        cdef bytes answer = PyBytes_FromStringAndSize(NULL, size)
        cdef uint8_t *to = <uint8_t *>PyBytes_AS_STRING(answer)
        memset(to, 0, size)
        put_32(to, <uint32_t>(size - 4))
        put_32(to + 4, <uint32_t>self.correlation_id)
        to[9] = 2
        to += 10
        if not by_id:
            to[0] = <uint8_t>(name + 1)
            to += 1
        memcpy(to, PyBytes_AS_STRING(self.named), name)
        to += name
        to[0] = 2
        put_32(to + 1, <uint32_t>self.partition)
        put_64(to + 7, <uint64_t>self.offset)
        put_64(to + 15, <uint64_t>self.append_ms)
        put_64(to + 23, <uint64_t>self.log_start_offset)
        to[31] = 1
        return answer


cdef class Reader:
    """See the .pyi."""

    cdef int last
    cdef object topic_of_id, rack_of
    cdef dict texts, ids, racks

    def __init__(self, last, topic_of_id, rack_of):
        self.last = last
        self.topic_of_id, self.rack_of = topic_of_id, rack_of
        self.texts, self.ids, self.racks = {}, {}, {}

    def read(self, data, Py_ssize_t count, double came_s, peer, ended):
        cdef Py_buffer whole
        PyObject_GetBuffer(data, &whole, PyBUF_SIMPLE)
        try:
            if count > whole.len:
                return None
            return self._read(<const uint8_t *>whole.buf, count, came_s, peer, ended)
        finally:
            PyBuffer_Release(&whole)

    cdef _read(self, const uint8_t *frame, Py_ssize_t count, double came_s, peer, ended):
        cdef Py_ssize_t at = HEAD, length, size = 0
        cdef int version, acks
        cdef uint8_t byte
        cdef int shift = 0
        cdef const uint8_t *batch
        if count < HEAD or <int32_t>get_32(frame) != count - LENGTH or get_16(frame + 4) != 0:
            return None
        version = <int16_t>get_16(frame + 6)
        if version < FIRST or version > self.last:
            return None
        length = <int16_t>get_16(frame + 12)
        if length > MOST_TEXT or length < -1:
            return None
        client = None
        if length >= 0:
            if at + length > count:
                return None
            client = self._text(frame + at, length)
            if client is None:
                return None
            at += length
        # No tagged fields; no transactional id; acks, timeout; one topic.
        if at + 10 > count or frame[at] or frame[at + 1]:
            return None
        acks = <int16_t>get_16(frame + at + 2)
        cdef int32_t timeout_ms = <int32_t>get_32(frame + at + 4)
        if (acks != 1 and acks != -1) or frame[at + 8] != 2:
            return None
        at += 9
        length = 16
        if version < TOPIC_IDS_SINCE:
            length = <Py_ssize_t>frame[at] - 1
            at += 1
            if length < 0 or length > MOST_NAME:
                return None
        if at + length > count:
            return None
        cdef bytes named = PyBytes_FromStringAndSize(<const char *>frame + at, length)
        topic = self._topic(named) if version >= TOPIC_IDS_SINCE else self._text(frame + at, length)
        if topic is None:
            return None
        at += length
        # One partition, and its number; then the records' length, and 1.
        if at + 5 > count or frame[at] != 2:
            return None
        cdef int32_t partition = <int32_t>get_32(frame + at + 1)
        if partition < 0:
            return None
        at += 5
        while True:
            if at >= count or shift > 28:
                return None
            byte = frame[at]
            at += 1
            size |= <Py_ssize_t>(byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        size -= 1
        # Three numbers of tagged fields are behind it: of the partition, of the topic, of the request.
        if size < BATCH_HEAD or size != count - at - 3 or frame[count - 3] or frame[count - 2] or frame[count - 1]:
            return None
        batch = frame + at
        if batch[16] != MAGIC or <int32_t>get_32(batch + 8) != size - BATCH_START:
            return None
        if get_16(batch + 21) & TRANSACTIONAL:
            return None
        cdef Request request = Request.__new__(Request)
        cdef Batch only = Batch.__new__(Batch)
        request.version, request.correlation_id, request.client_id = version, <int32_t>get_32(frame + 8), client
        request.acks, request.size, request.came_s, request.only = acks, count - LENGTH, came_s, only
        request.ended, request.named, request.rack, request.peer = ended, named, self._rack(client), peer
        request.topic, request.partition = topic, partition
        request.offset = request.append_ms = request.log_start_offset = -1
        only.request, only.topic, only.partition = request, topic, partition
        only.deadline_s = came_s + timeout_ms / 1000.0
        only.batch = PyBytes_FromStringAndSize(<const char *>batch, size)
        only.base_offset, only.leader_epoch = <int64_t>get_64(batch), <int32_t>get_32(batch + 12)
        only.crc, only.attributes = get_32(batch + 17), <int16_t>get_16(batch + 21)
        only.last_offset_delta = <int32_t>get_32(batch + 23)
        only.first_timestamp, only.max_timestamp = <int64_t>get_64(batch + 27), <int64_t>get_64(batch + 35)
        only.producer_id, only.producer_epoch = <int64_t>get_64(batch + 43), <int16_t>get_16(batch + 51)
        only.base_sequence, only.count = <int32_t>get_32(batch + 53), <int32_t>get_32(batch + 57)
        return request

    cdef _text(self, const uint8_t *at, Py_ssize_t length):
        """The text, None for what is no UTF-8; the same object for those that come often."""
        cdef bytes data = PyBytes_FromStringAndSize(<const char *>at, length)
        text = self.texts.get(data)
        if text is None:
            try:
                text = data.decode()
            except UnicodeDecodeError:
                return None
            if len(self.texts) >= MOST_REMEMBERED:
                self.texts.clear()
            self.texts[data] = text
        return text

    cdef _topic(self, bytes data):
        topic = self.ids.get(data)
        if topic is None:
            topic = self.topic_of_id(data)
            if len(self.ids) >= MOST_REMEMBERED:
                self.ids.clear()
            self.ids[data] = topic
        return topic

    cdef _rack(self, client):
        if client in self.racks:
            return self.racks[client]
        rack = self.rack_of(client)
        if len(self.racks) >= MOST_REMEMBERED:
            self.racks.clear()
        self.racks[client] = rack
        return rack


cdef inline uint16_t get_16(const uint8_t *at) noexcept:
    return <uint16_t>((at[0] << 8) | at[1])


cdef inline uint32_t get_32(const uint8_t *at) noexcept:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3]


cdef inline uint64_t get_64(const uint8_t *at) noexcept:
    return (<uint64_t>get_32(at) << 32) | get_32(at + 4)


cdef inline void put_32(uint8_t *to, uint32_t value) noexcept:
    to[0], to[1], to[2], to[3] = <uint8_t>(value >> 24), <uint8_t>(value >> 16), <uint8_t>(value >> 8), <uint8_t>value


cdef inline void put_64(uint8_t *to, uint64_t value) noexcept:
    put_32(to, <uint32_t>(value >> 32))
    put_32(to + 4, <uint32_t>value)

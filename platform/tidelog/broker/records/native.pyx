# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Record batches read and written in native code, without the interpreter's lock. See `native.pyi` for its functions.

What is read may be any bytes. They are looked at through `_number`, `_time` and `_text` alone, each of which compares
with the end before it goes on, and nothing is kept by a size that was not compared with the bytes that are there. What
is found is noted in `Row`s and copied from there; the bytes are not read a second time. All that is not plainly right
is left to the caller's other reader, which knows how to refuse it.

Arrays go from and to Arrow by its C data interface: https://arrow.apache.org/docs/format/CDataInterface.html
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove, memset


cdef extern from "crc32c.h":
    void crc32c_begin() noexcept nogil
    uint32_t crc32c_of(const uint8_t *at, size_t size, int by_tables) noexcept nogil


cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        pass
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *state)


cdef extern from *:
    """
    #ifndef TIDELOG_SOURCE
    #define TIDELOG_SOURCE ""
    #endif
    struct ArrowArray {
        int64_t length, null_count, offset, n_buffers, n_children;
        const void **buffers;
        struct ArrowArray **children;
        struct ArrowArray *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
    };
    """
    const char *TIDELOG_SOURCE
    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        ArrowArray *dictionary
        void (*release)(ArrowArray *) noexcept nogil
        void *private_data


# The digest of what this was built from.
SOURCE = TIDELOG_SOURCE.decode()

# Where a batch has its fields: tidelog.broker.records.batches.HEADER.
cdef enum:
    LENGTH_AT = 8
    LENGTH_END = 12
    EPOCH_AT = 12
    MAGIC_AT = 16
    CRC_AT = 17
    ATTRIBUTES_AT = 21
    LAST_DELTA_AT = 23
    FIRST_MS_AT = 27
    MAX_MS_AT = 35
    PRODUCER_AT = 43
    PRODUCER_EPOCH_AT = 51
    SEQUENCE_AT = 53
    COUNT_AT = 57
    HEADER_SIZE = 61
    MAGIC = 2
    CODEC_BITS = 0x07
    LOG_APPEND_TIME_BIT = 0x08
    TRANSACTIONAL_BIT = 0x10
    CONTROL_BIT = 0x20
    UNKNOWN_BITS = 0xff80
    LAST_CODEC = 4
    # The least bytes of a record, and of a header of it.
    LEAST_RECORD = 7
    LEAST_HEADER = 2
    # For fewer bytes the lock is kept: to get it back may take longer than to read them.
    SHORT_BYTES = 16384

cdef int64_t NO_TIMESTAMP = -1

crc32c_begin()


# --- numbers ------------------------------------------------------------------------------------------------------


cdef inline uint64_t _big(const uint8_t *at, int size) noexcept nogil:
    """An unsigned number of some bytes, the first of which counts most."""
    cdef uint64_t number = 0
    cdef int place
    for place in range(size):
        number = number << 8 | at[place]
    return number


cdef inline void _put_big(uint8_t *at, uint64_t number, int size) noexcept nogil:
    cdef int place
    for place in range(size):
        at[place] = <uint8_t>(number >> 8 * (size - 1 - place))


cdef struct Cursor:
    const uint8_t *at
    const uint8_t *end


cdef inline bint _coded(Cursor *cursor, int most_bits, uint64_t *code) noexcept nogil:
    """A varint of at most this number of bits; whether there is one."""
    cdef uint64_t number = 0
    cdef int bits = 0
    cdef uint8_t byte
    while cursor.at < cursor.end and bits < most_bits:
        byte = cursor.at[0]
        cursor.at += 1
        number |= <uint64_t>(byte & 127) << bits
        if byte < 128:
            code[0] = number
            return True
        bits += 7
    return False


cdef inline bint _number(Cursor *cursor, int64_t *number) noexcept nogil:
    """A number of 32 bits in at most 5 bytes, as all clients read it."""
    cdef uint64_t code = 0
    if not _coded(cursor, 35, &code) or code >> 32:
        return False
    number[0] = <int64_t>(code >> 1) ^ -<int64_t>(code & 1)
    return True


cdef inline bint _time(Cursor *cursor, int64_t *number) noexcept nogil:
    """A number of up to 56 bits, which all times have that any clock shows."""
    cdef uint64_t code = 0
    if not _coded(cursor, 56, &code):
        return False
    number[0] = <int64_t>(code >> 1) ^ -<int64_t>(code & 1)
    return True


cdef inline bint _text(Cursor *cursor, const uint8_t **text, int32_t *size) noexcept nogil:
    """A length and that number of bytes; -1 for null."""
    cdef int64_t length = 0
    if not _number(cursor, &length) or length < -1 or length > cursor.end - cursor.at:
        return False
    text[0] = cursor.at
    size[0] = <int32_t>length
    if length > 0:
        cursor.at += length
    return True


cdef bint _is_utf8(const uint8_t *at, int32_t size) noexcept nogil:
    """Whether bytes are UTF-8 as Python has it: the shortest form, and no surrogates (RFC 3629)."""
    cdef int32_t place = 0, more, n
    cdef uint32_t point, least
    while place < size:
        if at[place] < 0x80:
            place += 1
            continue
        if 0xc2 <= at[place] <= 0xdf:
            more, least, point = 1, 0x80, at[place] & 0x1f
        elif 0xe0 <= at[place] <= 0xef:
            more, least, point = 2, 0x800, at[place] & 0x0f
        elif 0xf0 <= at[place] <= 0xf4:
            more, least, point = 3, 0x10000, at[place] & 0x07
        else:
            return False
        if more >= size - place:
            return False
        for n in range(1, more + 1):
            if at[place + n] & 0xc0 != 0x80:
                return False
            point = point << 6 | (at[place + n] & 0x3f)
        if point < least or point > 0x10ffff or 0xd800 <= point <= 0xdfff:
            return False
        place += more + 1
    return True


# --- the checks of a batch ----------------------------------------------------------------------------------------


def is_good(batch, int64_t most_bytes):
    cdef Py_buffer view
    PyObject_GetBuffer(batch, &view, PyBUF_SIMPLE)
    cdef PyThreadState *state = PyEval_SaveThread() if view.len >= SHORT_BYTES else NULL
    cdef bint good = _is_good(<const uint8_t *>view.buf, view.len, most_bytes)
    if state != NULL:
        PyEval_RestoreThread(state)
    PyBuffer_Release(&view)
    return good


cdef bint _is_good(const uint8_t *at, Py_ssize_t size, int64_t most_bytes) noexcept nogil:
    if size < HEADER_SIZE or size > most_bytes or <int32_t>_big(at + LENGTH_AT, 4) != size - LENGTH_END:
        return False
    cdef int64_t count = <int32_t>_big(at + COUNT_AT, 4)
    cdef uint64_t attributes = _big(at + ATTRIBUTES_AT, 2)
    if _big(at, 8) or at[MAGIC_AT] != MAGIC or count <= 0 or count != <int64_t><int32_t>_big(at + LAST_DELTA_AT, 4) + 1:
        return False
    if attributes & CODEC_BITS > LAST_CODEC or attributes & (LOG_APPEND_TIME_BIT | CONTROL_BIT):
        return False
    if <int64_t>_big(at + PRODUCER_AT, 8) >= 0:
        if <int32_t>_big(at + SEQUENCE_AT, 4) < 0 or <int16_t>_big(at + PRODUCER_EPOCH_AT, 2) < 0:
            return False
    elif attributes & TRANSACTIONAL_BIT:
        return False
    return crc32c_of(at + ATTRIBUTES_AT, size - ATTRIBUTES_AT, 0) == _big(at + CRC_AT, 4)


def crc32c(data, bint by_tables=False):
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    cdef uint32_t crc = crc32c_of(<const uint8_t *>view.buf, view.len, by_tables)
    PyBuffer_Release(&view)
    return crc


# --- batches into columns -----------------------------------------------------------------------------------------


cdef struct Batch:
    Cursor body
    int64_t first_ms
    int64_t count  # of its records; 0: it is left out, -1: it is not good
    # Before its first record: of all that are read.
    int64_t row
    int64_t header
    int64_t keys  # bytes
    int64_t values


cdef struct Row:
    const uint8_t *key
    const uint8_t *value
    int32_t key_size  # -1: null
    int32_t value_size
    int32_t headers
    int32_t first_header  # where rows are written


cdef struct Header:
    const uint8_t *key
    const uint8_t *value
    int32_t key_size
    int32_t value_size


cdef struct Node:
    ArrowArray array
    const void *buffers[3]


cdef struct Table:
    # The columns, and below the last one its headers, their keys and values.
    Node nodes[7]
    ArrowArray *columns[4]
    ArrowArray *header[1]
    ArrowArray *key_value[2]
    const void *no_buffers[1]


cdef enum:
    KEY, VALUE, TIMESTAMP, HEADERS, HEADER, HEADER_KEY, HEADER_VALUE


cdef struct Reading:
    Batch *batches
    Py_ssize_t count
    Row *rows
    int64_t *times
    int64_t row
    Header *headers
    int64_t header
    int64_t room  # of `headers`
    bint no_memory
    # Of all rows: bytes of keys and of values, the least and last time but for those without one, how many lack a time
    # and a key, and the largest key, value and headers together.
    int64_t keys
    int64_t values
    int64_t earliest_ms
    int64_t latest_ms
    int64_t timeless
    int64_t keyless
    int64_t most_bytes


cdef bint _read_record(Reading *to, Cursor *body, int64_t expected, int64_t first_ms) noexcept nogil:
    """A record; whether it is one, and nothing about it is strange."""
    cdef int64_t number = 0, ms = 0, size, key_size, value_size
    if not _number(body, &number) or number < 0 or number > body.end - body.at:
        return False
    cdef Cursor record = Cursor(body.at, body.at + number)
    body.at = record.end
    if record.at == record.end or record.at[0]:  # attributes, of which there are none yet
        return False
    record.at += 1
    if not _time(&record, &ms) or not _number(&record, &number) or number != expected:
        return False
    if (first_ms > 0 and ms > (<int64_t>1 << 62) - first_ms) or first_ms < -(<int64_t>1 << 61):
        return False
    ms += first_ms
    cdef Row *row = to.rows + to.row
    if not _text(&record, &row.key, &row.key_size) or not _text(&record, &row.value, &row.value_size):
        return False
    if not _number(&record, &number) or number < 0 or number > (record.end - record.at) // LEAST_HEADER:
        return False
    key_size, value_size = max(row.key_size, 0), max(row.value_size, 0)
    size = key_size + value_size
    row.headers = <int32_t>number
    if number:
        if not _read_headers(to, &record, number, &size):
            return False
    if record.at != record.end:
        return False
    to.times[to.row] = ms
    to.row += 1
    to.keys += key_size
    to.values += value_size
    to.keyless += row.key_size < 0
    to.most_bytes = max(to.most_bytes, size)
    if ms != NO_TIMESTAMP:
        to.earliest_ms = min(to.earliest_ms, ms)
        to.latest_ms = max(to.latest_ms, ms)
    else:
        to.timeless += 1
    return True


cdef bint _read_headers(Reading *to, Cursor *record, int64_t count, int64_t *size) noexcept nogil:
    cdef Header *header
    cdef void *larger
    if to.room - to.header < count:
        to.room = max(2 * to.room, to.header + count)
        larger = realloc(to.headers, to.room * sizeof(Header))
        if larger == NULL:
            to.no_memory = True
            return False
        to.headers = <Header *>larger
    while count:
        header = to.headers + to.header
        if not _text(record, &header.key, &header.key_size) or header.key_size < 0:
            return False
        if not _is_utf8(header.key, header.key_size) or not _text(record, &header.value, &header.value_size):
            return False
        size[0] += header.key_size + (header.value_size if header.value_size > 0 else 0)
        to.header += 1
        count -= 1
    return True


cdef void _read_all(Reading *to, const Py_buffer *wholes, int64_t most_bytes) noexcept nogil:
    """The records of all batches. One that is strange has none.

    `wholes`: what is to be checked before, as `is_good` does; of the others `buf` is NULL.
    """
    cdef Py_ssize_t index
    cdef int64_t expected
    cdef Batch *batch
    for index in range(to.count):
        batch = to.batches + index
        batch.row, batch.header, batch.keys, batch.values = to.row, to.header, to.keys, to.values
        if wholes != NULL and wholes[index].buf != NULL:
            if not _is_good(<const uint8_t *>wholes[index].buf, wholes[index].len, most_bytes):
                batch.count = -1
                continue
        for expected in range(batch.count):
            if not _read_record(to, &batch.body, expected, batch.first_ms):
                batch.body.at = NULL
                break
        if batch.body.at != batch.body.end:
            to.row, to.header, to.keys, to.values = batch.row, batch.header, batch.keys, batch.values
            batch.count = 0
    batch = to.batches + to.count
    batch.row, batch.header, batch.keys, batch.values = to.row, to.header, to.keys, to.values


cdef Table *_table_of(Reading *reading) noexcept nogil:
    """What was read as arrays; NULL where there is no memory for them."""
    cdef Table *table = <Table *>calloc(1, sizeof(Table))
    cdef int64_t rows = reading.row, headers = reading.header
    if table == NULL:
        return NULL
    cdef Node *nodes = &table.nodes[0]
    cdef bint done = (
        _texts(&nodes[KEY], <const char *>&reading.rows.key, <const char *>&reading.rows.key_size, sizeof(Row), rows)
        and _texts(
            &nodes[VALUE], <const char *>&reading.rows.value, <const char *>&reading.rows.value_size, sizeof(Row), rows
        )
        and _times(&nodes[TIMESTAMP], reading)
        and _lists(&nodes[HEADERS], reading)
        and _texts(
            &nodes[HEADER_KEY],
            <const char *>&reading.headers.key,
            <const char *>&reading.headers.key_size,
            sizeof(Header),
            headers,
        )
        and _texts(
            &nodes[HEADER_VALUE],
            <const char *>&reading.headers.value,
            <const char *>&reading.headers.value_size,
            sizeof(Header),
            headers,
        )
    )
    if not done:
        _free(table)
        return NULL
    nodes[HEADER].array.length = headers
    nodes[HEADER].array.n_buffers = 1
    nodes[HEADERS].array.n_children = 1
    nodes[HEADERS].array.children = &table.header[0]
    nodes[HEADER].array.n_children = 2
    nodes[HEADER].array.children = &table.key_value[0]
    cdef int place
    for place in range(7):
        nodes[place].array.buffers = &nodes[place].buffers[0]
        nodes[place].array.release = _release_none
    for place in range(4):
        table.columns[place] = &nodes[place].array
    table.header[0] = &nodes[HEADER].array
    table.key_value[0] = &nodes[HEADER_KEY].array
    table.key_value[1] = &nodes[HEADER_VALUE].array
    return table


cdef bint _texts(Node *node, const char *texts, const char *sizes, size_t step, int64_t count) noexcept nogil:
    """A column of bytes; `texts` and `sizes`: where those of the first are, the others in steps from there."""
    cdef int64_t nulls = 0, bytes_ = 0, n
    cdef int32_t size
    cdef int32_t *borders = <int32_t *>malloc((count + 1) * sizeof(int32_t))
    node.buffers[1] = borders
    if borders == NULL:
        return False
    borders[0] = 0
    for n in range(count):
        size = (<const int32_t *>(sizes + n * step))[0]
        nulls += size < 0
        bytes_ += size if size > 0 else 0
        borders[n + 1] = <int32_t>bytes_
    cdef uint8_t *data = <uint8_t *>malloc(bytes_ + 1)
    node.buffers[2] = data
    if data == NULL:
        return False
    for n in range(count):
        size = borders[n + 1] - borders[n]
        if size:
            memcpy(data + borders[n], (<const uint8_t **>(texts + n * step))[0], size)
    node.array.length, node.array.null_count, node.array.n_buffers = count, nulls, 3
    if not nulls:
        return True
    cdef uint8_t *valid = <uint8_t *>calloc(count // 8 + 1, 1)
    node.buffers[0] = valid
    if valid == NULL:
        return False
    for n in range(count):
        valid[n >> 3] |= ((<const int32_t *>(sizes + n * step))[0] >= 0) << (n & 7)
    return True


cdef bint _times(Node *node, Reading *reading) noexcept nogil:
    cdef int64_t n, nulls = 0
    cdef int64_t *times = <int64_t *>malloc((reading.row + 1) * sizeof(int64_t))
    node.buffers[1] = times
    if times == NULL:
        return False
    memcpy(times, reading.times, reading.row * sizeof(int64_t))
    for n in range(reading.row):
        nulls += reading.times[n] == NO_TIMESTAMP
    node.array.length, node.array.null_count, node.array.n_buffers = reading.row, nulls, 2
    cdef uint8_t *valid = NULL
    if nulls:
        valid = <uint8_t *>calloc(reading.row // 8 + 1, 1)
        node.buffers[0] = valid
        if valid != NULL:
            for n in range(reading.row):
                valid[n >> 3] |= (reading.times[n] != NO_TIMESTAMP) << (n & 7)
    return not nulls or valid != NULL


cdef bint _lists(Node *node, Reading *reading) noexcept nogil:
    """The headers of each record, null where it has none."""
    cdef int64_t n, nulls = 0, rows = reading.row
    cdef int32_t *borders = <int32_t *>calloc(rows + 1, sizeof(int32_t))
    cdef uint8_t *valid = <uint8_t *>calloc(rows // 8 + 1, 1)
    node.buffers[0], node.buffers[1] = valid, borders
    if borders == NULL or valid == NULL:
        return False
    if reading.header:
        for n in range(rows):
            borders[n + 1] = borders[n] + reading.rows[n].headers
            valid[n >> 3] |= (reading.rows[n].headers != 0) << (n & 7)
            nulls += reading.rows[n].headers == 0
    node.array.length, node.array.null_count, node.array.n_buffers = rows, nulls if reading.header else rows, 2
    return True


cdef void _free(Table *table) noexcept nogil:
    cdef int place, n
    for place in range(7):
        for n in range(3):
            free(<void *>table.nodes[place].buffers[n])
    free(table)


cdef void _release_none(ArrowArray *array) noexcept nogil:
    """A column goes with its table: the importer takes no column out of it."""
    array.release = NULL


cdef void _release(ArrowArray *array) noexcept nogil:
    _free(<Table *>array.private_data)
    array.release = NULL


cdef class Notes:
    # What was read, and the memory that it is in.
    cdef Reading reading
    cdef Py_buffer *views
    cdef Py_ssize_t held
    cdef readonly list counts

    def __cinit__(self):
        memset(&self.reading, 0, sizeof(Reading))
        self.views, self.held = NULL, 0

    def __dealloc__(self):
        cdef Py_ssize_t index
        for index in range(self.held):
            PyBuffer_Release(&self.views[index])
        free(self.views)
        free(self.reading.batches)
        free(self.reading.rows)
        free(self.reading.times)
        free(self.reading.headers)

    @property
    def records(self):
        return self.reading.row

    @property
    def earliest_ms(self):
        return self.reading.earliest_ms

    @property
    def latest_ms(self):
        return self.reading.latest_ms

    @property
    def most_bytes(self):
        return self.reading.most_bytes

    @property
    def has_headers(self):
        return self.reading.header > 0

    @property
    def timeless(self):
        return self.reading.timeless

    @property
    def keyless(self):
        return self.reading.keyless

    def part(self, Py_ssize_t first, Py_ssize_t end):
        cdef const Batch *begins
        cdef const Batch *ends
        cdef const Row *row
        self._within(first, end)
        begins, ends = self.reading.batches + first, self.reading.batches + end
        row = self.reading.rows + begins.row
        return (
            <uintptr_t>&row.key, <uintptr_t>&row.key_size, <uintptr_t>&row.value, <uintptr_t>&row.value_size, sizeof(Row),
            <uintptr_t>(self.reading.times + begins.row), ends.row - begins.row, ends.keys - begins.keys,
            ends.values - begins.values,
        )

    def keys(self, Py_ssize_t first, Py_ssize_t end, int64_t most):
        cdef const Row *row
        cdef int64_t n
        self._within(first, end)
        keys = []
        for n in range(self.reading.batches[first].row, min(self.reading.batches[end].row, self.reading.batches[first].row + most)):
            row = self.reading.rows + n
            keys.append(None if row.key_size < 0 else PyBytes_FromStringAndSize(<const char *>row.key, row.key_size))
        return keys

    def columns(self, import_from_c, schema, Py_ssize_t first, Py_ssize_t end):
        cdef Reading part = self.reading
        cdef Table *table
        cdef ArrowArray array
        cdef PyThreadState *state
        self._within(first, end)
        part.rows += part.batches[first].row
        part.times += part.batches[first].row
        part.headers += part.batches[first].header
        part.row = part.batches[end].row - part.batches[first].row
        part.header = part.batches[end].header - part.batches[first].header
        state = PyEval_SaveThread() if part.keys + part.values >= SHORT_BYTES else NULL
        table = _table_of(&part)
        if state != NULL:
            PyEval_RestoreThread(state)
        if table == NULL:
            raise MemoryError
        memset(&array, 0, sizeof(ArrowArray))
        array.length, array.n_buffers, array.n_children = part.row, 1, 4
        array.buffers, array.children = &table.no_buffers[0], &table.columns[0]
        array.release, array.private_data = _release, table
        try:
            return import_from_c(<uintptr_t>&array, schema)
        finally:
            if array.release != NULL:  # not imported
                array.release(&array)

    cdef int _within(self, Py_ssize_t first, Py_ssize_t end) except -1:
        if not 0 <= first <= end <= self.reading.count:
            raise IndexError(f"there are no batches {first} to {end}")
        return 0


def read(list batches, list bodies, int64_t most_bytes):
    cdef Py_ssize_t count = len(batches), index
    cdef int64_t rows = 0, bytes_ = 0
    cdef Notes notes = Notes.__new__(Notes)
    cdef Reading *reading = &notes.reading
    cdef PyThreadState *state
    cdef const Py_buffer *whole
    cdef Py_buffer *wholes = NULL
    notes.views = <Py_buffer *>calloc(2 * count + 1, sizeof(Py_buffer))
    reading.batches = <Batch *>calloc(count + 1, sizeof(Batch))
    reading.count = count
    reading.earliest_ms, reading.latest_ms = (<uint64_t>1 << 63) - 1, -1
    try:
        if most_bytes >= 0:
            wholes = <Py_buffer *>calloc(count + 1, sizeof(Py_buffer))
        if notes.views == NULL or reading.batches == NULL or (most_bytes >= 0 and wholes == NULL):
            raise MemoryError
        for index in range(count):
            PyObject_GetBuffer(batches[index], &notes.views[notes.held], PyBUF_SIMPLE)
            whole = &notes.views[notes.held]
            notes.held += 1
            body = bodies[index]
            if body is not None:
                PyObject_GetBuffer(body, &notes.views[notes.held], PyBUF_SIMPLE)
                notes.held += 1
                _prepare(&reading.batches[index], whole, whole + 1)
            else:
                _prepare(&reading.batches[index], whole, NULL)
                if most_bytes >= 0:
                    wholes[index].buf, wholes[index].len = whole.buf, whole.len
            if reading.batches[index].count:
                rows += reading.batches[index].count
                bytes_ += reading.batches[index].body.end - reading.batches[index].body.at
        if bytes_ >= INT32_MAX:
            return None
        state = PyEval_SaveThread() if bytes_ >= SHORT_BYTES else NULL
        reading.rows = <Row *>malloc((rows + 1) * sizeof(Row))
        reading.times = <int64_t *>malloc((rows + 1) * sizeof(int64_t))
        reading.headers = <Header *>malloc(sizeof(Header))
        reading.room = 1
        if reading.rows != NULL and reading.times != NULL and reading.headers != NULL:
            _read_all(reading, wholes, most_bytes)
        else:
            reading.no_memory = True
        if state != NULL:
            PyEval_RestoreThread(state)
        if reading.no_memory:
            raise MemoryError
        notes.counts = [reading.batches[index].count for index in range(count)]
        return notes
    finally:
        free(wholes)


cdef void _prepare(Batch *batch, const Py_buffer *whole, const Py_buffer *body) noexcept:
    """Where a batch's records are; of one that claims more than there can be, or of another kind, none are read."""
    cdef const uint8_t *at = <const uint8_t *>whole.buf
    batch.count = 0
    batch.body = Cursor(NULL, NULL)
    if whole.len < HEADER_SIZE:
        return
    cdef uint64_t attributes = _big(at + ATTRIBUTES_AT, 2)
    cdef int64_t count = <int32_t>_big(at + COUNT_AT, 4)
    if attributes & (LOG_APPEND_TIME_BIT | CONTROL_BIT) or (body == NULL and attributes & CODEC_BITS):
        return
    if body == NULL:
        batch.body = Cursor(at + HEADER_SIZE, at + whole.len)
    else:
        batch.body = Cursor(<const uint8_t *>body.buf, <const uint8_t *>body.buf + body.len)
    if count <= 0 or count > (batch.body.end - batch.body.at) // LEAST_RECORD:
        return
    batch.count = count
    batch.first_ms = <int64_t>_big(at + FIRST_MS_AT, 8)


# --- rows into batches --------------------------------------------------------------------------------------------


cdef struct Written:
    # Rows to be written, by their offsets; times in ms since the epoch. Of its headers a row has those from
    # `first_header` on.
    int64_t count
    const Row *rows
    const int64_t *offsets
    const int64_t *times
    const int32_t *kinds
    const Header *headers


cdef struct Made:
    int64_t start  # rows
    int64_t end
    int64_t size  # without a batch's header
    int64_t most_ms


cdef inline int _varint_size(uint64_t code) noexcept nogil:
    cdef int size = 1
    while code >= 128:
        code >>= 7
        size += 1
    return size


cdef inline uint64_t _zigzag(int64_t number) noexcept nogil:
    return <uint64_t>number << 1 ^ <uint64_t>(number >> 63)


cdef inline uint8_t *_put_number(uint8_t *at, int64_t number) noexcept nogil:
    cdef uint64_t code = _zigzag(number)
    while code >= 128:
        at[0] = <uint8_t>(code & 127 | 128)
        at += 1
        code >>= 7
    at[0] = <uint8_t>code
    return at + 1


cdef inline int64_t _ms_of(int64_t micros) noexcept nogil:
    """Rounded down."""
    return micros / 1000 - (micros % 1000 < 0)


cdef inline int64_t _text_size(int32_t size) noexcept nogil:
    """The bytes of a value with its length before it."""
    return 1 if size < 0 else _varint_size(_zigzag(size)) + <int64_t>size


cdef inline uint8_t *_put_text(uint8_t *at, const uint8_t *text, int32_t size) noexcept nogil:
    at = _put_number(at, size)
    if size <= 0:
        return at
    memcpy(at, text, size)
    return at + size


cdef inline int64_t _headers_size(const Header *header, int32_t count) noexcept nogil:
    cdef int64_t size = _varint_size(_zigzag(count))
    cdef int32_t n
    for n in range(count):
        size += _text_size(header[n].key_size) + _text_size(header[n].value_size)
    return size


cdef uint8_t *_put_headers(uint8_t *at, const Header *header, int32_t count) noexcept nogil:
    cdef int32_t n
    at = _put_number(at, count)
    for n in range(count):
        at = _put_text(at, header[n].key, header[n].key_size)
        at = _put_text(at, header[n].value, header[n].value_size)
    return at


cdef Made *_plan(
    const Written *written, int64_t row, int32_t *sizes, int64_t most_bytes, int64_t most_in_all, Py_ssize_t *count
) noexcept nogil:
    """Which rows go into which batch, from this row on; NULL where there is no memory, or offsets fall.

    `sizes`: of the records. There is one batch at least, and more up to `most_in_all` bytes.
    """
    cdef int64_t start, size, whole, ms, first_ms, plain, left = most_in_all, most
    cdef Py_ssize_t room = 16
    cdef Made *plan = <Made *>malloc(room * sizeof(Made))
    cdef void *larger
    cdef const Row *one
    cdef bint is_right = plan != NULL
    count[0] = 0
    while is_right and row < written.count and left > 0:
        if count[0] == room:
            room *= 2
            larger = realloc(plan, room * sizeof(Made))
            if larger == NULL:
                is_right = False
                break
            plan = <Made *>larger
        most = min(most_bytes, left) - HEADER_SIZE
        start, whole, first_ms = row, 0, written.times[row]
        plan[count[0]] = Made(row, row, 0, first_ms)
        while row < written.count:
            ms, one = written.times[row], written.rows + row
            if written.kinds[row] != written.kinds[start] or (written.kinds[row] == 1 and ms != first_ms):
                break
            if written.offsets[row] < written.offsets[start]:
                is_right = False
                break
            if <uint64_t>written.offsets[row] - <uint64_t>written.offsets[start] > <uint64_t>INT32_MAX:
                break
            plain = 1 + _text_size(one.key_size) + _text_size(one.value_size)
            plain += _headers_size(written.headers + one.first_header, one.headers) if one.headers else 1
            plain += _varint_size(_zigzag(ms - first_ms)) + _varint_size(
                _zigzag(written.offsets[row] - written.offsets[start])
            )
            size = plain + _varint_size(_zigzag(plain))
            if size > INT32_MAX:
                is_right = False
                break
            if row > start and whole + size > most:
                break
            if row == start and count[0] > 0 and size > left - HEADER_SIZE:
                break
            sizes[row] = <int32_t>plain
            whole += size
            plan[count[0]].most_ms = max(plan[count[0]].most_ms, ms)
            row += 1
        if row == start:  # what is left of the bytes is too little for another one
            break
        plan[count[0]].end, plan[count[0]].size = row, whole
        left -= whole + HEADER_SIZE
        count[0] += 1
    if not is_right:
        free(plan)
        return NULL
    return plan


cdef bint _put_batch(
    const Written *written, const Made *made, const int32_t *sizes, uint8_t *batch, int32_t epoch, bint is_sealed
) noexcept nogil:
    """Write a batch, with its checksum where it stays as it is; whether it took as many bytes as it was to."""
    cdef uint8_t *at = batch + HEADER_SIZE
    cdef int64_t row, first = made.start, first_ms = written.times[made.start]
    cdef const Row *one
    for row in range(made.start, made.end):
        one = written.rows + row
        at = _put_number(at, sizes[row])
        at[0] = 0
        at = _put_number(at + 1, written.times[row] - first_ms)
        at = _put_number(at, written.offsets[row] - written.offsets[first])
        at = _put_text(at, one.key, one.key_size)
        at = _put_text(at, one.value, one.value_size)
        at = _put_headers(at, written.headers + one.first_header, one.headers) if one.headers else _put_number(at, 0)
    _put_big(batch, written.offsets[first], 8)
    _put_big(batch + LENGTH_AT, made.size + HEADER_SIZE - LENGTH_END, 4)
    _put_big(batch + EPOCH_AT, epoch, 4)
    batch[MAGIC_AT] = MAGIC
    _put_big(batch + ATTRIBUTES_AT, LOG_APPEND_TIME_BIT if written.kinds[first] == 1 else 0, 2)
    _put_big(batch + LAST_DELTA_AT, written.offsets[made.end - 1] - written.offsets[first], 4)
    _put_big(batch + FIRST_MS_AT, first_ms, 8)
    _put_big(batch + MAX_MS_AT, made.most_ms, 8)
    _put_big(batch + PRODUCER_AT, -1, 8)
    _put_big(batch + PRODUCER_EPOCH_AT, -1, 2)
    _put_big(batch + SEQUENCE_AT, -1, 4)
    _put_big(batch + COUNT_AT, made.end - made.start, 4)
    _put_big(
        batch + CRC_AT, crc32c_of(batch + ATTRIBUTES_AT, made.size + HEADER_SIZE - ATTRIBUTES_AT, 0) if is_sealed else 0, 4
    )
    return at == batch + HEADER_SIZE + made.size


cdef list _batches(
    const Written *written, int64_t row, int32_t epoch, int64_t most_bytes, int64_t most_in_all, bint is_sealed
):
    """Rows from this one on as batches, each with its first and last offset; None for what is not plain."""
    cdef Py_ssize_t count = 0, index
    cdef Made *plan = NULL
    cdef uint8_t **places = NULL
    cdef bint done = True
    cdef PyThreadState *state = PyEval_SaveThread()
    cdef int32_t *sizes = <int32_t *>malloc((written.count + 1) * sizeof(int32_t))
    if sizes != NULL:
        plan = _plan(written, row, sizes, most_bytes, most_in_all, &count)
    PyEval_RestoreThread(state)
    try:
        if plan == NULL:
            return None
        places = <uint8_t **>malloc((count + 1) * sizeof(uint8_t *))
        if places == NULL:
            return None
        made = []
        for index in range(count):
            if plan[index].size > INT32_MAX - HEADER_SIZE:
                return None
            batch = PyBytes_FromStringAndSize(NULL, plan[index].size + HEADER_SIZE)
            places[index] = <uint8_t *>PyBytes_AS_STRING(batch)
            made.append((batch, written.offsets[plan[index].start], written.offsets[plan[index].end - 1]))
        state = PyEval_SaveThread()
        for index in range(count):
            done &= _put_batch(written, &plan[index], sizes, places[index], epoch, is_sealed)
        PyEval_RestoreThread(state)
        if not done:
            raise SystemError("a record batch has another size than was planned")
        return made
    finally:
        free(plan)
        free(sizes)
        free(places)


# --- columns into rows --------------------------------------------------------------------------------------------


cdef struct Texts:
    # An Arrow array of bytes: `borders` and `valid` from its first value on.
    const int32_t *borders
    const uint8_t *data
    const uint8_t *valid
    int64_t first  # in `valid`
    int64_t length


cdef inline bint _is_null(const uint8_t *valid, int64_t place) noexcept nogil:
    return valid != NULL and not valid[place >> 3] >> (place & 7) & 1


cdef bint _texts_of(Texts *texts, const ArrowArray *array, int64_t first) noexcept nogil:
    """The values of an array, from the one at `first` of those that it shows; whether it has any buffers."""
    if array.n_buffers != 3 or array.buffers[1] == NULL:
        return False
    first += array.offset
    texts.borders = <const int32_t *>array.buffers[1] + first
    texts.data = <const uint8_t *>array.buffers[2]
    texts.valid = <const uint8_t *>array.buffers[0] if array.null_count else NULL
    texts.first = first
    texts.length = array.length - (first - array.offset)
    return True


cdef inline bint _text_of(const Texts *texts, int64_t place, const uint8_t **text, int32_t *size) noexcept nogil:
    """A value, of size -1 where it is null; whether its borders are right."""
    if _is_null(texts.valid, texts.first + place):
        size[0] = -1
        return True
    cdef int32_t begin = texts.borders[place]
    text[0] = texts.data + begin
    size[0] = texts.borders[place + 1] - begin
    return begin >= 0 and size[0] >= 0


cdef bint _has_no_nulls(const ArrowArray *array) noexcept nogil:
    return array.null_count == 0 or array.buffers[0] == NULL


cdef bint _headers_of(const ArrowArray *lists, Row *rows, int64_t count, Header **all) noexcept nogil:
    """The headers of rows; whether all that must be is there."""
    cdef const ArrowArray *header = lists.children[0]
    if not _has_no_nulls(header) or lists.buffers[1] == NULL:
        return False
    cdef const int32_t *borders = <const int32_t *>lists.buffers[1] + lists.offset
    cdef const uint8_t *valid = <const uint8_t *>lists.buffers[0] if lists.null_count else NULL
    cdef Texts keys, values
    cdef int64_t row, n, most
    if not _texts_of(&keys, header.children[0], header.offset):
        return False
    if not _texts_of(&values, header.children[1], header.offset):
        return False
    most = min(keys.length, values.length)
    cdef Header *headers = <Header *>malloc((most + 1) * sizeof(Header))
    all[0] = headers
    if headers == NULL or most > INT32_MAX:
        return False
    for row in range(count):
        if _is_null(valid, lists.offset + row):
            continue
        if borders[row] < 0 or borders[row + 1] < borders[row] or borders[row + 1] > most:
            return False
        rows[row].first_header, rows[row].headers = borders[row], borders[row + 1] - borders[row]
        for n in range(borders[row], borders[row + 1]):
            if not _text_of(&keys, n, &headers[n].key, &headers[n].key_size) or headers[n].key_size < 0:
                return False
            if not _text_of(&values, n, &headers[n].value, &headers[n].value_size):
                return False
    return True


cdef bint _written_of(Written *written, const ArrowArray *array) noexcept nogil:
    """Columns of `tidelog.log.delta.schema.RECORDS`, or of those with headers; whether all that must be is there."""
    cdef ArrowArray **columns = array.children
    cdef Texts keys, values
    cdef int64_t row
    if array.offset or array.n_children < 7:
        return False
    if not (_has_no_nulls(columns[4]) and _has_no_nulls(columns[5]) and _has_no_nulls(columns[6])):
        return False
    if not _texts_of(&keys, columns[0], 0) or not _texts_of(&values, columns[1], 0):
        return False
    cdef Row *rows = <Row *>calloc(array.length + 1, sizeof(Row))
    cdef int64_t *times = <int64_t *>malloc((array.length + 1) * sizeof(int64_t))
    cdef Header *headers = NULL
    written.rows, written.times, written.count = rows, times, array.length
    written.offsets = <const int64_t *>columns[4].buffers[1] + columns[4].offset
    written.kinds = <const int32_t *>columns[6].buffers[1] + columns[6].offset
    if rows == NULL or times == NULL:
        return False
    cdef const int64_t *micros = <const int64_t *>columns[5].buffers[1] + columns[5].offset
    for row in range(array.length):
        times[row] = _ms_of(micros[row])
        if not _text_of(&keys, row, &rows[row].key, &rows[row].key_size):
            return False
        if not _text_of(&values, row, &rows[row].value, &rows[row].value_size):
            return False
    if array.n_children < 8 or columns[7].null_count == array.length:
        return True
    cdef bint done = _headers_of(columns[7], rows, array.length, &headers)
    written.headers = headers
    return done


def batches(export_to_c, int32_t epoch, int64_t most_bytes, bint is_sealed):
    cdef ArrowArray array
    cdef Written written
    cdef bint is_plain
    cdef PyThreadState *state
    memset(&written, 0, sizeof(Written))
    array.release = NULL
    export_to_c(<uintptr_t>&array)
    try:
        state = PyEval_SaveThread()
        is_plain = _written_of(&written, &array)
        PyEval_RestoreThread(state)
        return _batches(&written, 0, epoch, most_bytes - 1, INT64_MAX, is_sealed) if is_plain else None
    finally:
        free(<void *>written.rows)
        free(<void *>written.times)
        free(<void *>written.headers)
        if array.release != NULL:
            array.release(&array)


include "pages.pxi"

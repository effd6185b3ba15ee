# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A small segment written in native code, byte for byte as `tidelog.log.segments.tiny_parquet` writes it.

Records come from Arrow by its C data interface: https://arrow.apache.org/docs/format/CDataInterface.html. The broker
or a program has checked them, and Arrow made their arrays: nothing here is a client's bytes but what is copied.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.ref cimport PyObject, Py_XDECREF
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memmove, memset


cdef extern from "crc32.h":
    void crc32_begin() noexcept nogil
    uint32_t crc32_of(const uint8_t *at, size_t size, int by_tables) noexcept nogil


cdef extern from "Python.h":
    int PyBUF_READ
    PyObject *PyBytes_FromStringAndSize(const char *data, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject **whole, Py_ssize_t size) except -1


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
        void (*release)(ArrowArray *) noexcept


# The digest of what this was built from.
SOURCE = TIDELOG_SOURCE.decode()

crc32_begin()


def crc32(data, bint by_tables=False):
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    cdef uint32_t sum_of = crc32_of(<const uint8_t *>view.buf, view.len, by_tables)
    PyBuffer_Release(&view)
    return sum_of


cdef enum:
    # Encodings, by Parquet's numbers.
    PLAIN = 0
    RLE = 3
    DELTA_BINARY_PACKED = 5
    RLE_DICTIONARY = 8
    # Kinds of fields of Thrift's compact protocol, each for the field after the one before.
    NEXT_I32 = 0x15
    NEXT_I64 = 0x16
    NEXT_BINARY = 0x18
    NEXT_LIST = 0x19
    NEXT_STRUCT = 0x1c
    NEXT_TRUE = 0x11
    # As in tiny_pages.py and tiny_parquet.py.
    BLOCK = 256
    MINIBLOCK = 64
    MINIBLOCKS = 4
    PAGE_BYTES = 262144
    FEW_RECORDS = 100
    # For fewer bytes the interpreter's lock is kept: to get it back may take longer than to write them.
    SHORT_BYTES = 16384
    # More than a page's header has, its levels but for a bit a record, or what a column has in the footer.
    MOST_HEAD = 64
    MOST_ABOUT = 256
    COLUMNS = 7
    POSITION = 0
    KEY = 1
    VALUE = 2
    HEADER_KEY = 3
    HEADER_VALUE = 4
    TIMESTAMP = 5
    TIMESTAMP_TYPE = 6


cdef struct Texts:
    # Values of an array: `borders` from its first one on, `valid` NULL where none is null.
    const int32_t *borders
    const uint8_t *data
    const uint8_t *valid
    int64_t first  # in `valid`
    # Or values wherever they are: `places` and `sizes` (negative: null) of the first one, the others in steps from there.
    const char *places
    const char *sizes
    int64_t step


cdef struct Chunk:
    # `bytes`: of its keys and of its values; `factor`: how many microseconds a time counts; `kinds`: NULL where all are 0.
    ArrowArray array
    int64_t rows
    int64_t bytes[2]
    Texts texts[2]
    const int64_t *times
    int64_t factor
    const int32_t *kinds


cdef struct Out:
    # A bytes object that grows, and its bytes; `at`: where what comes next goes.
    PyObject *whole
    uint8_t *start
    uint8_t *at
    uint8_t *end


cdef struct Column:
    # What the footer says of it; `begins`: its first byte in the file, `dictionary`: bytes of that page.
    int64_t begins
    int64_t dictionary
    int64_t size
    int64_t stored
    int codec


# --- bytes --------------------------------------------------------------------------------------------------------


cdef uint8_t *_varint(uint8_t *at, uint64_t number) noexcept nogil:
    while number >= 128:
        at[0] = <uint8_t>(number & 127 | 128)
        at += 1
        number >>= 7
    at[0] = <uint8_t>number
    return at + 1


cdef uint8_t *_integer(uint8_t *at, int64_t number) noexcept nogil:
    return _varint(at, <uint64_t>number << 1 ^ <uint64_t>(number >> 63))


cdef uint8_t *_field(uint8_t *at, int kind, int64_t number) noexcept nogil:
    at[0] = <uint8_t>kind
    return _integer(at + 1, number)


cdef uint8_t *_bytes(uint8_t *at, bytes data) noexcept:
    memcpy(at, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    return at + PyBytes_GET_SIZE(data)


cdef uint8_t *_little(uint8_t *at, uint64_t number, int size) noexcept nogil:
    cdef int place
    for place in range(size):
        at[place] = <uint8_t>(number >> 8 * place)
    return at + size


cdef inline int _reserve(Out *out, int64_t size) except -1 nogil:
    """Room for this number of bytes."""
    if out.end - out.at < size:
        _grow(out, size)
    return 0


cdef int _grow(Out *out, int64_t size) except -1 with gil:
    cdef int64_t used = out.at - out.start, room = max(2 * (out.end - out.start), used + size)
    _PyBytes_Resize(&out.whole, room)
    out.start = <uint8_t *>PyBytes_AS_STRING(<object>out.whole)
    out.at = out.start + used
    out.end = out.start + room
    return 0


# --- pages --------------------------------------------------------------------------------------------------------


cdef uint8_t *_head(uint8_t *at, int64_t count, int encoding, int64_t size, int64_t stored, int32_t checksum) noexcept nogil:
    """The header of a data page."""
    at = _field(at, NEXT_I32, 0)
    at = _field(at, NEXT_I32, size)
    at = _field(at, NEXT_I32, stored)
    at = _field(at, NEXT_I32, checksum)
    at[0] = NEXT_STRUCT
    at = _field(at + 1, NEXT_I32, count)
    at = _field(at, NEXT_I32, encoding)
    at = _field(at, NEXT_I32, RLE)
    at = _field(at, NEXT_I32, RLE)
    at[0] = at[1] = 0
    return at + 2


cdef int32_t _checksum(const uint8_t *at, int64_t size) noexcept nogil:
    return <int32_t>crc32_of(at, size, 0)


cdef uint8_t *_same_level(uint8_t *at, int level, int64_t count) noexcept nogil:
    cdef uint8_t *end = _varint(at + 4, <uint64_t>count << 1)
    end[0] = <uint8_t>level
    end += 1
    _little(at, end - at - 4, 4)
    return end


cdef uint8_t *_place(Out *out, int64_t count, int encoding, int64_t size, int64_t most) except NULL nogil:
    """Where a page's content goes that has likely `size` bytes, and `most` at most: behind a header."""
    cdef uint8_t head[MOST_HEAD]
    _reserve(out, MOST_HEAD + most)
    return out.at + (_head(head, count, encoding, size, size, -(1 << 30)) - head)


cdef int _end_page(
    Out *out, Column *column, int64_t count, int encoding, uint8_t *content, int64_t size, PyObject *compress
) except -1 nogil:
    """Compress a page's content, write its header before it, and go on behind it."""
    if compress == NULL:
        return _put_page(out, column, count, encoding, content, size, size)
    return _end_packed(out, column, count, encoding, content, size, compress)


cdef int _end_packed(
    Out *out, Column *column, int64_t count, int encoding, uint8_t *content, int64_t size, PyObject *compress
) except -1 with gil:
    cdef bytes packed = (<object>compress)(PyMemoryView_FromMemory(<char *>content, size, PyBUF_READ))
    cdef int64_t stored = PyBytes_GET_SIZE(packed)
    _reserve(out, MOST_HEAD + stored)
    return _put_page(out, column, count, encoding, <uint8_t *>PyBytes_AS_STRING(packed), size, stored)


cdef int _put_page(
    Out *out, Column *column, int64_t count, int encoding, const uint8_t *content, int64_t size, int64_t stored
) noexcept nogil:
    """A page of `size` bytes, which are `stored` ones now."""
    cdef uint8_t head[MOST_HEAD]
    cdef int64_t head_size
    head_size = _head(head, count, encoding, size, stored, _checksum(content, stored)) - head
    if content != out.at + head_size:
        memmove(out.at + head_size, content, stored)
    memcpy(out.at, head, head_size)
    out.at += head_size + stored
    column.size += head_size + size
    column.stored += head_size + stored
    return 0


cdef uint8_t *_delta_block(uint8_t *at, const int64_t *numbers, int64_t count) noexcept nogil:
    """`count` differences, each from a number to the next."""
    cdef int64_t least, delta, n
    cdef uint64_t most = 0, above
    cdef int size = 0
    least = <int64_t>(<uint64_t>numbers[1] - <uint64_t>numbers[0])
    for n in range(1, count):
        delta = <int64_t>(<uint64_t>numbers[n + 1] - <uint64_t>numbers[n])
        least = min(least, delta)
    for n in range(count):
        above = <uint64_t>numbers[n + 1] - <uint64_t>numbers[n] - <uint64_t>least
        most = max(most, above)
    if most:
        size = 1 if most < 1 << 8 else 2 if most < 1 << 16 else 4 if most >> 32 == 0 else 8
    at = _integer(at, least)
    cdef int64_t used = (count + MINIBLOCK - 1) // MINIBLOCK
    for n in range(MINIBLOCKS):
        at[n] = <uint8_t>(8 * size if n < used else 0)
    at += MINIBLOCKS
    if size:
        for n in range(count):
            above = <uint64_t>numbers[n + 1] - <uint64_t>numbers[n] - <uint64_t>least
            at = _little(at, above, size)
        memset(at, 0, (used * MINIBLOCK - count) * size)
        at += (used * MINIBLOCK - count) * size
    return at


cdef uint8_t *_deltas(uint8_t *at, const int64_t *numbers, int64_t count) noexcept nogil:
    cdef int64_t first = 0
    at = _varint(_varint(_varint(at, BLOCK), MINIBLOCKS), count)
    at = _integer(at, numbers[0])
    while first < count - 1:
        at = _delta_block(at, numbers + first, min(BLOCK, count - 1 - first))
        first += BLOCK
    return at


cdef uint8_t *_arange_deltas(uint8_t *at, int64_t count) noexcept nogil:
    """The numbers from 0 on."""
    cdef int64_t blocks = (count - 1 + BLOCK - 1) // BLOCK
    at = _varint(_varint(_varint(at, BLOCK), MINIBLOCKS), count)
    at = _integer(at, 0)
    while blocks:
        at = _integer(at, 1)
        memset(at, 0, MINIBLOCKS)
        at += MINIBLOCKS
        blocks -= 1
    return at


cdef inline int32_t _size_at(const Texts *texts, int64_t row) noexcept nogil:
    """Of a value that may be anywhere; negative for null."""
    return (<const int32_t *>(texts.sizes + row * texts.step))[0]


cdef inline bint _is_null(const Texts *texts, int64_t row) noexcept nogil:
    cdef int64_t place = texts.first + row
    if texts.places != NULL:
        return _size_at(texts, row) < 0
    return texts.valid != NULL and not texts.valid[place >> 3] >> (place & 7) & 1


cdef struct Place:
    # A record: its chunk, and its row there.
    int64_t chunk
    int64_t row


cdef Place _ahead(const Chunk *chunks, Place place, int64_t rows) noexcept nogil:
    place.row += rows
    while place.row and place.row >= chunks[place.chunk].rows:
        place.row -= chunks[place.chunk].rows
        place.chunk += 1
    return place


cdef int64_t _binaries_size(const Chunk *chunks, int which, Place place, int64_t count, int64_t *nulls) noexcept nogil:
    """Bytes of the values of `count` records with their lengths, nulls left out."""
    cdef int64_t size = 0, rows, row
    cdef int32_t text_size
    cdef const Texts *texts
    nulls[0] = 0
    while count:
        texts = &chunks[place.chunk].texts[which]
        rows = min(count, chunks[place.chunk].rows - place.row)
        if texts.places != NULL:
            for row in range(place.row, place.row + rows):
                text_size = _size_at(texts, row)
                nulls[0] += text_size < 0
                size += 4 + text_size if text_size >= 0 else 0
        elif texts.valid == NULL:
            size += 4 * rows + texts.borders[place.row + rows] - texts.borders[place.row]
        else:
            for row in range(place.row, place.row + rows):
                if _is_null(texts, row):
                    nulls[0] += 1
                else:
                    size += 4 + texts.borders[row + 1] - texts.borders[row]
        count -= rows
        place = Place(place.chunk + 1, 0)
    return size


cdef uint8_t *_binaries(uint8_t *at, const Chunk *chunks, int which, Place place, int64_t count) noexcept nogil:
    cdef int64_t rows, row
    cdef int32_t size
    cdef const uint8_t *text
    cdef const Texts *texts
    while count:
        texts = &chunks[place.chunk].texts[which]
        rows = min(count, chunks[place.chunk].rows - place.row)
        for row in range(place.row, place.row + rows):
            if texts.places != NULL:
                size = _size_at(texts, row)
                if size < 0:
                    continue
                text = (<const uint8_t **>(texts.places + row * texts.step))[0]
            elif _is_null(texts, row):
                continue
            else:
                size = texts.borders[row + 1] - texts.borders[row]
                text = texts.data + texts.borders[row]
            memcpy(at, &size, 4)
            if size:
                memcpy(at + 4, text, size)
            at += 4 + size
        count -= rows
        place = Place(place.chunk + 1, 0)
    return at


cdef uint8_t *_mixed_levels(uint8_t *at, const Chunk *chunks, int which, Place place, int64_t count) noexcept nogil:
    """A bit for each record: whether it has a value."""
    cdef int64_t groups = (count + 7) // 8, n
    cdef uint8_t *bits = _varint(at + 4, <uint64_t>groups << 1 | 1)
    memset(bits, 0, groups)
    _little(at, bits + groups - at - 4, 4)
    for n in range(count):
        bits[n >> 3] |= (not _is_null(&chunks[place.chunk].texts[which], place.row)) << (n & 7)
        place = _ahead(chunks, place, 1)
    return bits + groups


# --- columns ------------------------------------------------------------------------------------------------------


cdef int _nulls(Out *out, Column *column, int64_t count, int lists, int codec, PyObject *compress, int64_t least) except -1 nogil:
    cdef uint8_t level[16]
    cdef int64_t size = _same_level(level, 0, count) - level
    cdef uint8_t *content
    cdef int n
    if size * (1 + lists) < least:
        compress = NULL
    column.codec = codec if compress != NULL else 0
    content = _place(out, count, PLAIN, size * (1 + lists), size * (1 + lists))
    for n in range(1 + lists):
        memcpy(content + n * size, level, size)
    return _end_page(out, column, count, PLAIN, content, size * (1 + lists), compress)


cdef int _text_column(
    Out *out, Column *column, const Chunk *chunks, int64_t count_chunks, int which, int64_t count, int codec, PyObject *compress,
    int64_t least,
) except -1 nogil:
    cdef int64_t nulls = 0, size = 0, each = count, done = 0, part, levels, n
    cdef Place place = Place(0, 0)
    cdef uint8_t level[16]
    cdef uint8_t *content
    cdef uint8_t *end
    size = _binaries_size(chunks, which, place, count, &nulls)
    if nulls == count:
        return _nulls(out, column, count, 0, codec, compress, least)
    if count > FEW_RECORDS:
        size = 4 * count
        for n in range(count_chunks):
            size += chunks[n].bytes[which]
        part = (size + PAGE_BYTES - 1) // PAGE_BYTES
        each = (count + part - 1) // part
        if size < least:
            compress = NULL
    while done < count:
        part = min(each, count - done)
        size = _binaries_size(chunks, which, place, part, &nulls)
        levels = _same_level(level, 1, part) - level
        if nulls:
            levels = 4 + (_varint(level, <uint64_t>((part + 7) // 8) << 1 | 1) - level) + (part + 7) // 8
        if count <= FEW_RECORDS and levels + size < least:
            compress = NULL
        content = _place(out, part, PLAIN, levels + size, levels + size)
        end = (
            _mixed_levels(content, chunks, which, place, part) if nulls else _same_level(content, 1, part)
        )
        end = _binaries(end, chunks, which, place, part)
        if end - content != levels + size:
            with gil:
                raise SystemError("a page has another size than was planned")
        _end_page(out, column, part, PLAIN, content, levels + size, compress)
        done += part
        place = _ahead(chunks, place, part)
    column.codec = codec if compress != NULL else 0
    return 0


cdef int _number_column(
    Out *out, Column *column, const int64_t *numbers, int64_t count, int codec, PyObject *compress, int64_t least
) except -1 nogil:
    """Numbers, NULL for those from 0 on."""
    cdef int64_t blocks = count // BLOCK + 1
    cdef int64_t most = MOST_HEAD + blocks * (MOST_HEAD + (0 if numbers == NULL else BLOCK * 8))
    cdef uint8_t *content = _place(out, count, DELTA_BINARY_PACKED, 100, most)
    cdef uint8_t *end = _same_level(content, 1, count)
    end = _arange_deltas(end, count) if numbers == NULL else _deltas(end, numbers, count)
    if end - content < least:
        compress = NULL
    column.codec = codec if compress != NULL else 0
    return _end_page(out, column, count, DELTA_BINARY_PACKED, content, end - content, compress)


cdef int _kind_column(Out *out, Column *column, int64_t count, int32_t kind) except -1 nogil:
    """One type of timestamp, in a dictionary of one."""
    _reserve(out, 2 * MOST_HEAD)
    cdef uint8_t content[4]
    _little(content, <uint32_t>kind, 4)
    cdef uint8_t *at = out.at
    at = _field(at, NEXT_I32, 2)
    at = _field(at, NEXT_I32, 4)
    at = _field(at, NEXT_I32, 4)
    at = _field(at, NEXT_I32, _checksum(content, 4))
    at[0] = 0x3c
    at = _field(at + 1, NEXT_I32, 1)
    at = _field(at, NEXT_I32, PLAIN)
    at[0] = at[1] = 0
    memcpy(at + 2, content, 4)
    column.dictionary = column.size = column.stored = at + 6 - out.at
    out.at = at + 6
    cdef uint8_t *begin = _place(out, count, RLE_DICTIONARY, 20, MOST_HEAD)
    at = _same_level(begin, 1, count)
    at[0] = 1
    at = _varint(at + 1, <uint64_t>count << 1)
    at[0] = 0
    return _end_page(out, column, count, RLE_DICTIONARY, begin, at + 1 - begin, NULL)


# --- the file -----------------------------------------------------------------------------------------------------


cdef bint _chunk_of(Chunk *chunk) noexcept nogil:
    """Whether the columns are there, and there are no headers, nor records without a time."""
    cdef ArrowArray **columns = chunk.array.children
    cdef ArrowArray *texts
    cdef int which
    if chunk.array.n_children != 5 or chunk.array.offset or columns[2].null_count != columns[2].length:
        return False
    chunk.rows = chunk.array.length
    for which in range(2):
        texts = columns[which]
        if texts.n_buffers != 3 or texts.buffers[1] == NULL:
            return False
        chunk.texts[which].borders = <const int32_t *>texts.buffers[1] + texts.offset
        chunk.texts[which].data = <const uint8_t *>texts.buffers[2]
        chunk.texts[which].valid = <const uint8_t *>texts.buffers[0] if texts.null_count else NULL
        chunk.texts[which].first = texts.offset
        chunk.bytes[which] = chunk.texts[which].borders[chunk.rows] - chunk.texts[which].borders[0]
    for which in range(3, 5):
        if columns[which].null_count > 0 or columns[which].n_buffers != 2:
            return False
    chunk.times, chunk.factor = <const int64_t *>columns[3].buffers[1] + columns[3].offset, 1
    chunk.kinds = <const int32_t *>columns[4].buffers[1] + columns[4].offset
    return True


cdef int _footer(
    Out *out, const Column *columns, tuple names, bytes head, bytes tail, int64_t count, int64_t low, int64_t high
) except -1:
    cdef int64_t size = 0
    cdef int place
    cdef const Column *column
    cdef bytes name
    _reserve(out, PyBytes_GET_SIZE(head) + PyBytes_GET_SIZE(tail) + COLUMNS * MOST_ABOUT)
    cdef uint8_t *at = out.at + 8  # the seal comes before
    cdef uint8_t *begin = at
    at = _bytes(at, head)
    at = _field(at, NEXT_I64, count)
    at[0], at[1], at[2], at[3] = NEXT_LIST, 0x1c, NEXT_LIST, COLUMNS << 4 | 0xc
    at += 4
    for place in range(COLUMNS):
        column, name = &columns[place], names[place]
        size += column.size
        at[0], at[1], at[2] = 0x26, 0, NEXT_STRUCT
        at = _bytes(at + 3, name)
        at = _field(at, NEXT_I32, column.codec)
        at = _field(at, NEXT_I64, count)
        at = _field(at, NEXT_I64, column.size)
        at = _field(at, NEXT_I64, column.stored)
        at = _field(at, 0x26, column.begins + column.dictionary)
        if column.dictionary:
            at = _field(at, 0x26, column.begins)
        if place == POSITION or place == TIMESTAMP:
            at[0], at[1], at[2], at[3], at[4] = 0x3c, 0x36, 0, 0x28, 8
            at = _little(at + 5, <uint64_t>(count - 1 if place == POSITION else high), 8)
            at[0], at[1] = NEXT_BINARY, 8
            at = _little(at + 2, <uint64_t>(0 if place == POSITION else low), 8)
            at[0], at[1], at[2] = NEXT_TRUE, NEXT_TRUE, 0
            at += 3
        at[0] = at[1] = 0
        at += 2
    at = _field(at, NEXT_I64, size)
    at = _field(at, NEXT_I64, count)
    at[0] = 0
    at = _bytes(at + 1, tail)
    at = _little(at, at - begin, 4)
    memcpy(at, <const char *>b"PAR1", 4)
    out.at = at + 4
    return 0


cdef int _noted(Chunk *chunk, tuple part) except -1:
    """What `NotedRecords.part` says."""
    cdef uintptr_t keys, key_sizes, values, value_sizes, times
    cdef int64_t step
    keys, key_sizes, values, value_sizes, step, times, chunk.rows, chunk.bytes[0], chunk.bytes[1] = part
    chunk.texts[0].places, chunk.texts[0].sizes = <const char *>keys, <const char *>key_sizes
    chunk.texts[1].places, chunk.texts[1].sizes = <const char *>values, <const char *>value_sizes
    chunk.texts[0].step = chunk.texts[1].step = step
    chunk.times, chunk.factor = <const int64_t *>times, 1000
    return 0


cdef bint _times(const Chunk *chunks, Py_ssize_t count, int64_t *micros, int64_t *low, int64_t *high) noexcept nogil:
    """The times of all records, the least and the last; whether all are of one kind."""
    cdef Py_ssize_t index
    cdef int64_t row, time, at = 0
    cdef int32_t kind = _first_kind(chunks, count)
    low[0], high[0] = INT64_MAX, INT64_MIN
    for index in range(count):
        for row in range(chunks[index].rows):
            time = chunks[index].times[row] * chunks[index].factor
            micros[at] = time
            at += 1
            low[0], high[0] = min(low[0], time), max(high[0], time)
        if chunks[index].kinds != NULL:
            for row in range(chunks[index].rows):
                if chunks[index].kinds[row] != kind:
                    return False
        elif chunks[index].rows and kind:
            return False
    return True


cdef int _pages(
    Out *out, Column *columns, const Chunk *chunks, Py_ssize_t chunk_count, const int64_t *micros, int64_t count,
    int codec, PyObject *compress, int64_t least,
) except -1 nogil:
    """The pages of all columns."""
    cdef int n
    memcpy(out.at, <const char *>b"PAR1", 4)
    out.at += 4
    for n in range(COLUMNS):
        columns[n].begins = out.at - out.start
        if n == POSITION:
            _number_column(out, &columns[n], NULL, count, codec, NULL, least)
        elif n == KEY or n == VALUE:
            _text_column(out, &columns[n], chunks, chunk_count, n - KEY, count, codec, compress, least)
        elif n == TIMESTAMP:
            _number_column(out, &columns[n], micros, count, codec, compress, least)
        elif n == TIMESTAMP_TYPE:
            _kind_column(out, &columns[n], count, _first_kind(chunks, chunk_count))
        else:
            _nulls(out, &columns[n], count, 1, codec, compress, least)
    return 0


def segment(list parts, tuple names, bytes head, bytes tail, seal_of, int codec, compress, int64_t least):
    cdef int64_t count = 0, size = 0, low = 0, high = 0, number
    cdef Py_ssize_t chunk_count = len(parts), index
    cdef Chunk *chunks = <Chunk *>calloc(chunk_count + 1, sizeof(Chunk))
    cdef int64_t *micros = NULL
    cdef PyObject *packing = NULL if compress is None else <PyObject *>compress
    cdef Column columns[COLUMNS]
    cdef Out out
    cdef bytes seal
    cdef bint is_plain
    out.whole = NULL
    if chunks == NULL:
        raise MemoryError
    try:
        for index in range(chunk_count):
            if isinstance(parts[index], tuple):
                _noted(&chunks[index], parts[index])
            else:
                parts[index](<uintptr_t>&chunks[index].array)
                if not _chunk_of(&chunks[index]):
                    return None
            count += chunks[index].rows
            size += chunks[index].bytes[0] + chunks[index].bytes[1]
        if not count:
            return None
        micros = <int64_t *>malloc(count * sizeof(int64_t))
        if micros == NULL:
            raise MemoryError
        with nogil:
            is_plain = _times(chunks, chunk_count, micros, &low, &high)
        if not is_plain:
            return None
        # Without a codec all fits at once: values with their lengths, and levels; numbers reserve their own.
        size = size + 9 * count if compress is None else size // 2 + 9 * count
        out.whole = PyBytes_FromStringAndSize(NULL, size + 4096)
        out.at = out.start = <uint8_t *>PyBytes_AS_STRING(<object>out.whole)
        out.end = out.at + size + 4096
        memset(columns, 0, sizeof(columns))
        if size < SHORT_BYTES:
            _pages(&out, columns, chunks, chunk_count, micros, count, codec, packing, least)
        else:
            with nogil:
                _pages(&out, columns, chunks, chunk_count, micros, count, codec, packing, least)
        number = out.at - out.start
        _footer(&out, columns, names, head, tail, count, low, high)
        seal = seal_of(PyMemoryView_FromMemory(
            <char *>out.start + number + 8, out.at - out.start - number - 8, PyBUF_READ
        ))
        if PyBytes_GET_SIZE(seal) != 8:
            raise SystemError("a seal has another size than was planned")
        memcpy(out.start + number, PyBytes_AS_STRING(seal), 8)
        _PyBytes_Resize(&out.whole, out.at - out.start)
        return <object>out.whole, low, high
    finally:
        Py_XDECREF(out.whole)
        free(micros)
        for index in range(chunk_count):
            if chunks[index].array.release != NULL:
                chunks[index].array.release(&chunks[index].array)
        free(chunks)


cdef int32_t _first_kind(const Chunk *chunks, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t index
    for index in range(count):
        if chunks[index].rows:
            return chunks[index].kinds[0] if chunks[index].kinds != NULL else 0
    return 0

# Rows of a segment's pages, as Parquet has them: https://parquet.apache.org/docs/file-format/ (part of native.pyx).
#
# Pages may be any bytes. Each is read through a cursor that is compared with the page's end, and nothing is kept by a
# number that was not compared with the bytes or the rows that are there. What is not plainly right is left to Arrow.


cdef extern from *:
    """
    #include <stdint.h>
    static inline uint32_t tidelog_four(const uint8_t *at) {
        return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    }
    static inline uint64_t tidelog_eight(const uint8_t *at) {
        return tidelog_four(at) | (uint64_t)tidelog_four(at + 4) << 32;
    }
    """
    uint32_t tidelog_four(const uint8_t *at) noexcept nogil
    uint64_t tidelog_eight(const uint8_t *at) noexcept nogil


# --- thrift -------------------------------------------------------------------------------------------------------

# Kinds of the compact protocol, and how deep structs and lists go at most.
cdef enum:
    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    STRUCT = 12
    DEEPEST = 12


cdef uint64_t _code(Cursor *cursor) except? 0:
    cdef uint64_t code = 0
    if not _coded(cursor, 70, &code):
        raise ValueError("a number goes on behind the end")
    return code


cdef uint8_t _byte(Cursor *cursor) except? 0:
    if cursor.at >= cursor.end:
        raise ValueError("it ends early")
    cursor.at += 1
    return cursor.at[-1]


cdef object _value(Cursor *cursor, int kind, int depth):
    cdef uint64_t code, count
    cdef int of
    if kind == BYTE:
        return _byte(cursor)
    if kind == I16 or kind == I32 or kind == I64:
        code = _code(cursor)
        return <int64_t>(code >> 1) ^ -<int64_t>(code & 1)
    if kind == BINARY or kind == DOUBLE:
        code = 8 if kind == DOUBLE else _code(cursor)
        if code > <uint64_t>(cursor.end - cursor.at):
            raise ValueError("bytes go on behind the end")
        cursor.at += code
        return PyBytes_FromStringAndSize(<const char *>cursor.at - code, code)
    if depth > DEEPEST:
        raise ValueError("it is too deep")
    if kind == STRUCT:
        return _fields(cursor, depth + 1)
    if kind != LIST and kind != SET:
        raise ValueError("it has a field of another kind")
    of = _byte(cursor)
    count, of = of >> 4, of & 15
    if count == 15:
        count = _code(cursor)
    if count > <uint64_t>(cursor.end - cursor.at):
        raise ValueError("a list goes on behind the end")
    if of == TRUE or of == FALSE:
        of = BYTE
    values = []
    while count:
        values.append(_value(cursor, of, depth + 1))
        count -= 1
    return values


cdef dict _fields(Cursor *cursor, int depth):
    cdef int head, number = 0, kind
    cdef uint64_t code
    cdef dict fields = {}
    while True:
        head = _byte(cursor)
        if not head:
            return fields
        kind = head & 15
        if head >> 4:
            number += head >> 4
        else:
            code = _code(cursor)
            if code > 0xffff:
                raise ValueError("a field has too large a number")
            number = <int>(code >> 1)
        fields[number] = kind == TRUE if kind == TRUE or kind == FALSE else _value(cursor, kind, depth)


def thrift(data, Py_ssize_t at, Py_ssize_t end):
    cdef Py_buffer view
    cdef Cursor cursor
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= at <= end <= view.len:
            raise ValueError("it begins or ends outside of the bytes")
        cursor = Cursor(<const uint8_t *>view.buf + at, <const uint8_t *>view.buf + end)
        fields = _fields(&cursor, 0)
        return fields, cursor.at - <const uint8_t *>view.buf
    finally:
        PyBuffer_Release(&view)


# --- numbers of pages ---------------------------------------------------------------------------------------------

cdef enum:
    # Encodings, by Parquet's numbers.
    PLAIN = 0
    PLAIN_DICTIONARY = 2
    DELTA_BINARY_PACKED = 5
    RLE_DICTIONARY = 8
    # The most values of a block of differences.
    MOST_IN_BLOCK = 65536


cdef struct Page:
    Cursor content
    int64_t values
    int encoding
    bint is_dictionary


cdef struct Column:
    Page *pages
    Py_ssize_t count


cdef struct Hybrid:
    # Runs of numbers that are alike, or packed by their bits.
    Cursor cursor
    int width
    int64_t left  # of the run
    bint is_packed
    uint32_t number
    const uint8_t *packed
    int64_t bit


cdef bint _next_run(Hybrid *runs) noexcept nogil:
    cdef uint64_t code = 0
    cdef int64_t size
    cdef int n
    if not _coded(&runs.cursor, 35, &code):
        return False
    runs.is_packed = code & 1
    code >>= 1
    if not code or code > <uint64_t>INT32_MAX:
        return False
    size = <int64_t>code * runs.width if runs.is_packed else (runs.width + 7) // 8
    if size > runs.cursor.end - runs.cursor.at:
        return False
    if runs.is_packed:
        runs.packed, runs.bit, runs.left = runs.cursor.at, 0, <int64_t>code * 8
    else:
        runs.number, runs.left = 0, <int64_t>code
        for n in range(<int>size):
            runs.number |= <uint32_t>runs.cursor.at[n] << 8 * n
    runs.cursor.at += size
    return True


cdef inline uint64_t _bits(const uint8_t *at, const uint8_t *end, int64_t bit, int width) noexcept nogil:
    """A number of up to 64 bits, the lowest first; all of its bytes are there."""
    cdef uint64_t number = 0
    cdef int shift = bit & 7, n
    at += bit >> 3
    if end - at >= 9:
        number = tidelog_eight(at) >> shift
        if shift + width > 64:
            number |= <uint64_t>at[8] << (64 - shift)
    else:
        for n in range((shift + width + 7) // 8):
            if n < 8:
                number |= <uint64_t>at[n] << 8 * n
        number >>= shift
        if shift + width > 64:
            number |= <uint64_t>at[8] << (64 - shift)
    return number if width == 64 else number & ((<uint64_t>1 << width) - 1)


cdef inline bint _next(Hybrid *runs, uint32_t *number) noexcept nogil:
    if not runs.left and not _next_run(runs):
        return False
    runs.left -= 1
    if not runs.is_packed:
        number[0] = runs.number
        return True
    number[0] = <uint32_t>_bits(runs.packed, runs.cursor.at, runs.bit, runs.width)
    runs.bit += runs.width
    return True


cdef bint _levels(Cursor *content, int width, Hybrid *levels) noexcept nogil:
    """A page's levels, which come first, behind their size."""
    cdef int64_t size
    if content.end - content.at < 4:
        return False
    size = tidelog_four(content.at)
    content.at += 4
    if size > content.end - content.at:
        return False
    levels[0] = Hybrid(Cursor(content.at, content.at + size), width, 0, False, 0, NULL, 0)
    content.at += size
    return True


cdef bint _no_nulls(Cursor *content, int64_t values) noexcept nogil:
    """Whether a page's levels say that no value is null."""
    cdef Hybrid levels
    cdef uint32_t level = 0
    if not _levels(content, 1, &levels):
        return False
    while values:
        if not _next(&levels, &level) or level != 1:
            return False
        values -= 1
        if not levels.is_packed and levels.left:
            values -= min(values, levels.left)
            levels.left = 0
    return True


cdef bint _differences(Cursor *content, int64_t *numbers, int64_t values) noexcept nogil:
    """DELTA_BINARY_PACKED."""
    cdef uint64_t block = 0, parts = 0, total = 0, code = 0, least, number
    cdef int64_t place = 1, each, size, n
    cdef const uint8_t *widths
    cdef uint64_t part
    cdef int width
    if not _coded(content, 35, &block) or not _coded(content, 35, &parts) or not _coded(content, 35, &total):
        return False
    if not _coded(content, 70, &code) or not block or block > MOST_IN_BLOCK or not parts or block % parts:
        return False
    each = block // parts
    if each % 8 or total != <uint64_t>values or values < 1:
        return False
    number = (code >> 1) ^ (0 - (code & 1))
    numbers[0] = <int64_t>number
    while place < values:
        if not _coded(content, 70, &code) or <uint64_t>(content.end - content.at) < parts:
            return False
        least = (code >> 1) ^ (0 - (code & 1))
        widths = content.at
        content.at += parts
        for part in range(parts):
            if place == values:
                break
            width = widths[part]
            size = each // 8 * width
            if width > 64 or size > content.end - content.at:
                return False
            for n in range(min(each, values - place)):
                if width == 0:
                    number += least
                elif width == 8:
                    number += least + content.at[n]
                else:
                    number += least + _bits(content.at, content.at + size, n * width, width)
                numbers[place] = <int64_t>number
                place += 1
            content.at += size
    return True


cdef bint _long_numbers(const Column *column, int64_t *numbers, int64_t rows) noexcept nogil:
    """A column of numbers of 64 bits, none of them null."""
    cdef Py_ssize_t index
    cdef int64_t row = 0, n
    cdef Cursor content
    cdef const Page *page
    for index in range(column.count):
        page, content = column.pages + index, column.pages[index].content
        if page.is_dictionary or page.values > rows - row or not _no_nulls(&content, page.values):
            return False
        if page.encoding == DELTA_BINARY_PACKED:
            if not _differences(&content, numbers + row, page.values):
                return False
        elif page.encoding == PLAIN and content.end - content.at == 8 * page.values:
            for n in range(page.values):
                numbers[row + n] = <int64_t>tidelog_eight(content.at + 8 * n)
        else:
            return False
        row += page.values
    return row == rows


cdef bint _short_numbers(const Column *column, int32_t *numbers, int64_t rows) noexcept nogil:
    """A column of numbers of 32 bits, none of them null, plain or by a dictionary."""
    cdef Py_ssize_t index
    cdef int64_t row = 0, n, same
    cdef uint32_t place = 0
    cdef Cursor content, entries = Cursor(NULL, NULL)
    cdef const Page *page
    cdef Hybrid places
    for index in range(column.count):
        page, content = column.pages + index, column.pages[index].content
        if page.is_dictionary:
            if page.values != (content.end - content.at) // 4:
                return False
            entries = content
            continue
        if page.values > rows - row or not _no_nulls(&content, page.values):
            return False
        if page.encoding == PLAIN and content.end - content.at == 4 * page.values:
            for n in range(page.values):
                numbers[row + n] = <int32_t>tidelog_four(content.at + 4 * n)
        elif page.encoding in (RLE_DICTIONARY, PLAIN_DICTIONARY) and _places(&content, &places):
            n = 0
            while n < page.values:
                if not _next(&places, &place) or <int64_t>place >= (entries.end - entries.at) // 4:
                    return False
                same = 1
                if not places.is_packed:
                    same += min(places.left, page.values - n - 1)
                    places.left -= same - 1
                for n in range(n, n + same):
                    numbers[row + n] = <int32_t>tidelog_four(entries.at + 4 * place)
                n += 1
        else:
            return False
        row += page.values
    return row == rows


cdef inline bint _places(Cursor *content, Hybrid *places) noexcept nogil:
    """Places in a dictionary, behind their width."""
    if content.at == content.end or content.at[0] > 32:
        return False
    places[0] = Hybrid(Cursor(content.at + 1, content.end), content.at[0], 0, False, 0, NULL, 0)
    return True


# --- texts of pages -----------------------------------------------------------------------------------------------


cdef struct Text:
    const uint8_t *at
    int32_t size


cdef struct Reader:
    # Where a column's texts come from.
    Text *entries  # of its dictionary
    int64_t entry_count
    Cursor content
    bint by_places
    Hybrid places


cdef inline bint _plain_text(Cursor *content, Text *text) noexcept nogil:
    cdef int64_t size
    if content.end - content.at < 4:
        return False
    size = tidelog_four(content.at)
    if size > content.end - content.at - 4 or size > INT32_MAX:
        return False
    text[0] = Text(content.at + 4, <int32_t>size)
    content.at += 4 + size
    return True


cdef inline bint _next_text(Reader *reader, Text *text) noexcept nogil:
    cdef uint32_t place = 0
    if not reader.by_places:
        return _plain_text(&reader.content, text)
    if not _next(&reader.places, &place) or <int64_t>place >= reader.entry_count:
        return False
    text[0] = reader.entries[place]
    return True


cdef bint _dictionary(Reader *reader, const Page *page) noexcept nogil:
    cdef int64_t n
    cdef Cursor content = page.content
    if reader.entries != NULL or page.values > (content.end - content.at) // 4:
        return False
    reader.entries = <Text *>malloc((page.values + 1) * sizeof(Text))
    if reader.entries == NULL:
        return False
    for n in range(page.values):
        if not _plain_text(&content, reader.entries + n):
            return False
    reader.entry_count = page.values
    return content.at == content.end


cdef bint _begin_page(Reader *reader, const Page *page, int repeated, int width, Hybrid *repetition, Hybrid *definition) noexcept nogil:
    """The levels of a page, and then its texts."""
    reader.content = page.content
    if repeated and not _levels(&reader.content, 1, repetition):
        return False
    if not _levels(&reader.content, width, definition):
        return False
    reader.by_places = page.encoding == RLE_DICTIONARY or page.encoding == PLAIN_DICTIONARY
    if not reader.by_places:
        return page.encoding == PLAIN
    if reader.content.at == reader.content.end:  # no value is there
        reader.places = Hybrid(Cursor(NULL, NULL), 0, 0, False, 0, NULL, 0)
        return True
    return _places(&reader.content, &reader.places)


cdef bint _has_ended(const Reader *reader) noexcept nogil:
    return reader.by_places or reader.content.at == reader.content.end


cdef bint _read_texts(Reader *reader, const Column *column, char *texts, char *sizes, int64_t rows) noexcept nogil:
    """A column of texts. `texts` and `sizes`: where those of the first row go, the others in steps of a row."""
    cdef Py_ssize_t index
    cdef int64_t row = 0, n, same
    cdef uint32_t level = 0
    cdef Hybrid definition
    cdef Text text
    cdef const Page *page
    for index in range(column.count):
        page = column.pages + index
        if page.is_dictionary:
            if not _dictionary(reader, page):
                return False
            continue
        if page.values > rows - row or not _begin_page(reader, page, False, 1, NULL, &definition):
            return False
        n = row + page.values
        while row < n:
            if not _next(&definition, &level):
                return False
            same = 1
            if not definition.is_packed:
                same += min(definition.left, n - row - 1)
                definition.left -= same - 1
            if level > 1:
                return False
            while same:
                if level and not _next_text(reader, &text):
                    return False
                if level:
                    (<const uint8_t **>(texts + row * sizeof(Row)))[0] = text.at
                (<int32_t *>(sizes + row * sizeof(Row)))[0] = text.size if level else -1
                row += 1
                same -= 1
        if not _has_ended(reader):
            return False
    return row == rows


# Levels of the headers' keys and their values: the list is null, empty, or has an element, which is not null and of
# which one may be null.
cdef enum:
    NO_LIST = 0
    EMPTY_LIST = 1
    NULL_TEXT = 3
    WHOLE_TEXT = 4


cdef bint _read_headers_column(
    Reader *reader, const Column *column, Decoding *to, bint is_key
) noexcept nogil:
    """The headers' keys, which are noted, or then their values, of the same lists."""
    cdef Py_ssize_t index
    cdef int64_t row = -1, header = 0, n
    cdef uint32_t goes_on = 0, level = 0
    cdef Hybrid repetition, definition
    cdef const Page *page
    cdef Text text
    cdef Row *rows = to.rows
    for index in range(column.count):
        page = column.pages + index
        if page.is_dictionary:
            if not _dictionary(reader, page):
                return False
            continue
        if not _begin_page(reader, page, True, 3, &repetition, &definition):
            return False
        n = page.values
        while n > 0:
            if not _next(&repetition, &goes_on) or not _next(&definition, &level):
                return False
            n -= 1
            if goes_on == 0:
                row += 1
                if row == to.count:
                    return False
                if is_key:
                    rows[row].headers, rows[row].first_header = 0, <int32_t>header
                elif header != rows[row].first_header:
                    return False
            elif row < 0 or goes_on != 1 or level < NULL_TEXT:
                return False
            if level == NO_LIST or level == EMPTY_LIST:
                if goes_on == 0 and level == NO_LIST and not repetition.is_packed and not definition.is_packed:
                    # Mostly no record has any.
                    while n and repetition.left and definition.left and row + 1 < to.count:
                        row += 1
                        if is_key:
                            rows[row].headers, rows[row].first_header = 0, <int32_t>header
                        elif header != rows[row].first_header:
                            return False
                        repetition.left -= 1
                        definition.left -= 1
                        n -= 1
                continue
            if level != WHOLE_TEXT and (is_key or level != NULL_TEXT):
                return False
            text = Text(NULL, -1)
            if level == WHOLE_TEXT and not _next_text(reader, &text):
                return False
            if is_key:
                if header == INT32_MAX or not _room_for_header(to, header):
                    return False
                to.headers[header].key, to.headers[header].key_size = text.at, text.size
                rows[row].headers += 1
            else:
                if header == to.header:
                    return False
                to.headers[header].value, to.headers[header].value_size = text.at, text.size
            header += 1
        if not _has_ended(reader):
            return False
    if is_key:
        to.header = header
    return row + 1 == to.count and header == to.header


cdef bint _room_for_header(Decoding *to, int64_t header) noexcept nogil:
    cdef void *larger
    if header < to.room:
        return True
    larger = realloc(to.headers, (2 * to.room + 64) * sizeof(Header))
    if larger == NULL:
        return False
    to.headers, to.room = <Header *>larger, 2 * to.room + 64
    return True


# --- row groups ---------------------------------------------------------------------------------------------------


cdef enum:
    POSITIONS
    KEYS
    VALUES
    HEADER_KEYS
    HEADER_VALUES
    TIMESTAMPS
    TIMESTAMP_TYPES
    COLUMN_COUNT


cdef struct Decoding:
    # The rows of one row group, which are behind others.
    int64_t count
    Row *rows
    int64_t *offsets
    int64_t *times
    int32_t *kinds
    Header *headers
    int64_t header
    int64_t room
    int64_t bytes


cdef bint _decoded(const Column *columns, Decoding *to, int64_t base, int64_t first, int64_t end) noexcept nogil:
    """Read a row group; whether all of it is plain. See `Rows.add`."""
    cdef Reader readers[4]
    cdef int64_t row, before
    cdef bint done
    cdef int n
    memset(&readers, 0, sizeof(readers))
    done = (
        _read_texts(&readers[0], &columns[KEYS], <char *>&to.rows.key, <char *>&to.rows.key_size, to.count)
        and _read_texts(&readers[1], &columns[VALUES], <char *>&to.rows.value, <char *>&to.rows.value_size, to.count)
        and _read_headers_column(&readers[2], &columns[HEADER_KEYS], to, True)
        and _read_headers_column(&readers[3], &columns[HEADER_VALUES], to, False)
        and _long_numbers(&columns[TIMESTAMPS], to.times, to.count)
        and _short_numbers(&columns[TIMESTAMP_TYPES], to.kinds, to.count)
    )
    if done and first < 0:
        done = _long_numbers(&columns[POSITIONS], to.offsets, to.count)
    for n in range(4):
        free(readers[n].entries)
    if not done:
        return False
    before = base - 1
    for row in range(to.count):
        if first >= 0:
            to.offsets[row] = base + first + row
        elif to.offsets[row] < 0 or to.offsets[row] > INT64_MAX - base:
            return False
        else:
            to.offsets[row] += base
        if to.offsets[row] <= before or to.offsets[row] >= end:
            return False
        before = to.offsets[row]
        to.times[row] = _ms_of(to.times[row])
        to.bytes += _row_bytes(&to.rows[row], to.headers)
    return True


cdef inline int64_t _row_bytes(const Row *row, const Header *headers) noexcept nogil:
    """About what a row takes in a batch."""
    cdef int64_t size = 8 + max(row.key_size, 0) + max(row.value_size, 0)
    cdef int32_t n
    for n in range(row.headers):
        size += 2 + headers[row.first_header + n].key_size + max(headers[row.first_header + n].value_size, 0)
    return size


cdef class Rows:
    cdef Row *_rows
    cdef int64_t *_offsets
    cdef int64_t *_times
    cdef int32_t *_kinds
    cdef Header *_headers
    cdef int64_t _start, _count, _room, _header, _header_room, _bytes
    cdef list _kept  # (the end of the rows that point into them, contents of pages)

    def __cinit__(self):
        self._kept = []

    def __dealloc__(self):
        free(self._rows)
        free(self._offsets)
        free(self._times)
        free(self._kinds)
        free(self._headers)

    @property
    def size(self):
        return self._bytes

    @property
    def next_offset(self):
        return self._offsets[self._start] if self._start < self._count else -1

    def add(self, int64_t count, list columns, int64_t base, int64_t first, int64_t low, int64_t end):
        cdef Column own[7]
        cdef Decoding to
        cdef Py_ssize_t index, n
        cdef int64_t row
        cdef Py_buffer view
        cdef bint done = True
        cdef PyThreadState *state
        memset(&own, 0, sizeof(own))
        memset(&to, 0, sizeof(to))
        if count <= 0 or len(columns) != COLUMN_COUNT or not self._make_room(count):
            return False
        kept = []
        try:
            for index in range(COLUMN_COUNT):
                own[index].pages = <Page *>calloc(len(columns[index]) + 1, sizeof(Page))
                if own[index].pages == NULL:
                    raise MemoryError
                for content, values, encoding, is_dictionary in columns[index]:
                    held = memoryview(content)
                    PyObject_GetBuffer(held, &view, PyBUF_SIMPLE)
                    # The memoryview keeps the bytes where they are.
                    PyBuffer_Release(&view)
                    kept.append(held)
                    n = own[index].count
                    own[index].pages[n].content = Cursor(<const uint8_t *>view.buf, <const uint8_t *>view.buf + view.len)
                    own[index].pages[n].values, own[index].pages[n].encoding = values, encoding
                    own[index].pages[n].is_dictionary = is_dictionary
                    if own[index].pages[n].values < 0:
                        return False
                    own[index].count += 1
            to.count, to.rows, to.offsets = count, self._rows + self._count, self._offsets + self._count
            to.times, to.kinds = self._times + self._count, self._kinds + self._count
            state = PyEval_SaveThread()
            done = _decoded(own, &to, base, first, end)
            PyEval_RestoreThread(state)
            return done and self._take(&to, low, kept)
        finally:
            for index in range(COLUMN_COUNT):
                free(own[index].pages)
            free(to.headers)

    cdef bint _make_room(self, int64_t count) except -1:
        """Room for rows behind those that are there, of which those that were written are dropped."""
        cdef int64_t left = self._count - self._start
        if self._start:
            if left:
                memmove(self._rows, self._rows + self._start, left * sizeof(Row))
                memmove(self._offsets, self._offsets + self._start, left * sizeof(int64_t))
                memmove(self._times, self._times + self._start, left * sizeof(int64_t))
                memmove(self._kinds, self._kinds + self._start, left * sizeof(int32_t))
            self._kept = [(end - self._start, held) for end, held in self._kept if end > self._start]
            self._start, self._count = 0, left
            self._drop_headers()
        if left + count <= self._room:
            return True
        if left + count > INT32_MAX:
            return False
        cdef int64_t room = max(left + count, min(2 * self._room, INT32_MAX))
        cdef void *rows = realloc(self._rows, room * sizeof(Row))
        if rows != NULL:
            self._rows = <Row *>rows
        cdef void *offsets = realloc(self._offsets, room * sizeof(int64_t))
        if offsets != NULL:
            self._offsets = <int64_t *>offsets
        cdef void *times = realloc(self._times, room * sizeof(int64_t))
        if times != NULL:
            self._times = <int64_t *>times
        cdef void *kinds = realloc(self._kinds, room * sizeof(int32_t))
        if kinds != NULL:
            self._kinds = <int32_t *>kinds
        if rows == NULL or offsets == NULL or times == NULL or kinds == NULL:
            raise MemoryError
        self._room = room
        return True

    cdef void _drop_headers(self) noexcept:
        """Of rows that are gone."""
        cdef int64_t row, first = self._header
        for row in range(self._count):
            if self._rows[row].headers:
                first = min(first, self._rows[row].first_header)
                self._rows[row].first_header -= <int32_t>first
        if first and first < self._header:
            memmove(self._headers, self._headers + first, (self._header - first) * sizeof(Header))
        self._header -= first

    cdef bint _take(self, Decoding *to, int64_t low, list kept) except -1:
        """Take the rows that were read, from the offset `low` on."""
        cdef int64_t row
        cdef void *larger
        if to.header:
            if self._header + to.header > INT32_MAX:
                return False
            if self._header + to.header > self._header_room:
                larger = realloc(self._headers, 2 * (self._header + to.header) * sizeof(Header))
                if larger == NULL:
                    raise MemoryError
                self._headers, self._header_room = <Header *>larger, 2 * (self._header + to.header)
            memcpy(self._headers + self._header, to.headers, to.header * sizeof(Header))
            for row in range(to.count):
                to.rows[row].first_header += <int32_t>self._header
            self._header += to.header
        self._count += to.count
        self._bytes += to.bytes
        self._kept.append((self._count, kept))
        while self._start < self._count and self._offsets[self._start] < low:
            self._skip()
        return True

    cdef void _skip(self) noexcept:
        self._bytes -= _row_bytes(&self._rows[self._start], self._headers)
        self._start += 1

    def batches(self, int32_t epoch, int64_t most_bytes, int64_t most_in_all, int64_t stop, bint is_sealed):
        cdef Written written
        cdef int64_t count = self._count, last
        while count > self._start and self._offsets[count - 1] >= stop:
            count -= 1
        written = Written(count, self._rows, self._offsets, self._times, self._kinds, self._headers)
        made = _batches(&written, self._start, epoch, most_bytes - 1, most_in_all, is_sealed)
        if made:
            last = made[len(made) - 1][2]
            while self._start < count and self._offsets[self._start] <= last:
                self._skip()
        return made

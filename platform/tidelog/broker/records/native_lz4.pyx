# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""How much an LZ4 frame unpacks to, which it need not say itself. Nothing is unpacked.

What is read may be any bytes: each is compared with the end before it is read. All that is not plainly right, as a
checksum, an offset or a second frame, is for the library that unpacks; here only sizes are added.
Source: https://github.com/lz4/lz4/tree/dev/doc, lz4_Frame_format.md and lz4_Block_format.md.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t


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
    MAGIC = 0x184d2204
    VERSION_BITS = 0xc0
    VERSION = 0x40
    BLOCK_CHECKSUM_BIT = 0x10
    CONTENT_SIZE_BIT = 0x08
    CONTENT_CHECKSUM_BIT = 0x04
    DICTIONARY_BIT = 0x01
    RESERVED_BIT = 0x02
    # Magic, flags, sizes of blocks, checksum of these.
    LEAST_HEAD = 7
    LEAST_MATCH = 4

cdef uint32_t PLAIN_BIT = <uint32_t>1 << 31


cdef inline uint32_t _little(const uint8_t *at) noexcept nogil:
    return at[0] | <uint32_t>at[1] << 8 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 24


def unpacked_size(packed, int64_t most):
    cdef Py_buffer view
    cdef int64_t size
    PyObject_GetBuffer(packed, &view, PyBUF_SIMPLE)
    size = _frame(<const uint8_t *>view.buf, <const uint8_t *>view.buf + view.len, most)
    PyBuffer_Release(&view)
    return size


cdef int64_t _frame(const uint8_t *at, const uint8_t *end, int64_t most) noexcept nogil:
    """The bytes that a frame unpacks to, which ends where the bytes do; -1 for another, and for more than `most`."""
    cdef int64_t size = 0, block
    cdef uint32_t length
    if end - at < LEAST_HEAD or _little(at) != MAGIC:
        return -1
    cdef uint8_t flags = at[4]
    if flags & VERSION_BITS != VERSION or flags & (DICTIONARY_BIT | RESERVED_BIT):
        return -1
    at += LEAST_HEAD
    if flags & CONTENT_SIZE_BIT:
        if end - at < 8:
            return -1
        at += 8
    while True:
        if end - at < 4:
            return -1
        length = _little(at)
        at += 4
        if not length:
            break
        if <int64_t>(length & ~PLAIN_BIT) > end - at:
            return -1
        if length & PLAIN_BIT:
            length &= ~PLAIN_BIT
            block = length
        else:
            block = _block(at, at + length, most - size)
        size += block
        if block < 0 or size > most:
            return -1
        at += length
        if flags & BLOCK_CHECKSUM_BIT:
            if end - at < 4:
                return -1
            at += 4
    if flags & CONTENT_CHECKSUM_BIT:
        if end - at < 4:
            return -1
        at += 4
    return size if at == end else -1


cdef int64_t _block(const uint8_t *at, const uint8_t *end, int64_t most) noexcept nogil:
    """The bytes of a block's sequences, of which the last one is literals alone; -1 as for `_frame`."""
    cdef int64_t size = 0, literals, match
    cdef uint8_t token
    while at < end:
        token = at[0]
        at += 1
        literals = token >> 4
        if literals == 15 and not _more(&at, end, &literals):
            return -1
        if literals > end - at:
            return -1
        at += literals
        size += literals
        if size > most:
            return -1
        if at == end:
            return size
        if end - at < 2:
            return -1
        at += 2
        match = token & 15
        if match == 15 and not _more(&at, end, &match):
            return -1
        size += match + LEAST_MATCH
        if size > most:
            return -1
    return -1


cdef inline bint _more(const uint8_t **at, const uint8_t *end, int64_t *length) noexcept nogil:
    """A length goes on until a byte that is not 255; it has 255 times as many as there are bytes at most."""
    cdef uint8_t byte = 255
    while byte == 255:
        if at[0] >= end:
            return False
        byte = at[0][0]
        at[0] += 1
        length[0] += byte
    return True

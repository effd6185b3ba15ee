r"""Bytes from the command line: UTF-8 text with the escapes \n \r \t \0 \\ and \xHH."""

import re

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|.?)", re.DOTALL)


def to_bytes(text: str) -> bytes:
    """An argument as the bytes that were typed: UTF-8, or whatever the shell passed on."""
    return text.encode("utf-8", "surrogateescape")


def unescape(text: str) -> bytes:
    r"""The bytes of a text with escapes: `unescape(r"\t")` is one tab. Raises ValueError for an unknown escape."""
    data, at = b"", 0
    for match in _ESCAPE.finditer(text):
        data += to_bytes(text[at : match.start()]) + _escaped(match[1])
        at = match.end()
    return data + to_bytes(text[at:])


def _escaped(code: str) -> bytes:
    if len(code) == 3:
        return bytes([int(code[1:], 16)])
    if code not in _ESCAPES:
        raise ValueError(rf"\{code} is no escape; there are \n, \r, \t, \0, \\ and \xHH")
    return _ESCAPES[code]

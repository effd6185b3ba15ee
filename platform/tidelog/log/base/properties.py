"""Properties files, as Java writes and reads them."""

import re
from collections.abc import Iterator
from typing import Final

# An escape, and where a key ends.
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_KEY: Final = re.compile(r"((?:[^\\=:\s]|\\.)*)\s*[=:]?\s*", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def properties(text: str) -> dict[str, str]:
    """{key: value} of properties, as Java reads them; the last line of a key counts.

    >>> properties("listeners = PLAINTEXT://:9092 \\n# a comment\\nbroker.id:1")
    {'listeners': 'PLAINTEXT://:9092', 'broker.id': '1'}
    """
    values = {}
    for line in _lines(text):
        matched = _KEY.match(line)
        end = matched.end() if matched else 0
        key = _unescaped(matched[1]) if matched else ""
        values[key] = _unescaped(line[end:]).strip()
    return values


def _lines(text: str) -> Iterator[str]:
    """Logical lines: without comments, and those joined that a backslash continues."""
    whole = ""
    for line in text.splitlines():
        rest = line.lstrip()
        if not whole and (not rest or rest[0] in "#!"):
            continue
        whole += rest
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            whole = whole[:-1]
            continue
        yield whole
        whole = ""
    if whole:
        yield whole


def _unescaped(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        escape = found[1]
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _LETTERS.get(escape, escape)

    return _ESCAPE.sub(plain, text)

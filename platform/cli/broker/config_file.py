"""A broker's configuration file: Kafka's properties, or TOML."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tidelog.commands.failures import UsageProblemError

# As Java's Properties reads them: an escape, and where a key ends.
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_KEY: Final = re.compile(r"((?:[^\\=:\s]|\\.)*)\s*[=:]?\s*", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_config(path: str) -> dict[str, str]:
    """{key: value} of a file: TOML where its name ends in .toml, else properties. Raises `UsageProblemError`."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as e:
        raise UsageProblemError(f"{path} can't be read: {e.strerror}.") from e
    except UnicodeDecodeError as e:
        raise UsageProblemError(f"{path} is no text in UTF-8: {e.reason} at byte {e.start}.") from e
    if not path.endswith(".toml"):
        return properties(text)
    try:
        return dict(_flat(tomllib.loads(text), ""))
    except tomllib.TOMLDecodeError as e:
        raise UsageProblemError(
            f"{path} is no TOML: {e}. A key that is also the beginning of others is put between quotes, as in"
            ' "max.connections" = 100.'
        ) from e


def properties(text: str) -> dict[str, str]:
    """{key: value} of properties, as Java reads them; the last line of a key counts.

    >>> properties("listeners = PLAINTEXT://:9092 \\n# a comment\\nbroker.id:1")
    {'listeners': 'PLAINTEXT://:9092', 'broker.id': '1'}
    """
    found = {}
    for line in _lines(text):
        matched = _KEY.match(line)
        end = matched.end() if matched else 0
        key = _unescaped(matched[1]) if matched else ""
        found[key] = _unescaped(line[end:]).strip()
    return found


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


def _flat(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """The values of a table and those within it: `ssl.keystore.location` may be written with dots or in tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(_text, value)) if isinstance(value, list) else str(value)

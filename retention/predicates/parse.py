"""The text of a condition on records, as `--where` takes it, in the words of SQL.

`headers['deploy'] = '42' AND timestamp >= '2026-11-28T09:00:00Z'`, `key IN ('a', 'b')`, `NOT (key LIKE 'test-%')`,
`headers['deploy'] IS NOT NULL`. Bytes that are no text are X'00ff'; a timestamp may be a number, ms since the epoch.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from tidelog.log.base.errors import TidelogError
from tidelog.retention.predicates.where import (
    All,
    Any_,
    Compare,
    Condition,
    HeaderValue,
    IsIn,
    IsNull,
    Like,
    Not,
    Operand,
    RecordKey,
    Timestamp,
)

MOST_CHARACTERS: Final = 10_000
MOST_DEPTH: Final = 50
# From year 1 to year 9999.
_LONGEST_MS: Final = 253_402_300_800_000
_MOST_DIGITS: Final = 20

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<hex>[xX]'[^']*')|(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+)|(?P<word>[A-Za-z_]+)"
    r"|(?P<sign><=|>=|!=|<>|[=<>()\[\],]))"
)
_EXAMPLE: Final = "headers['deploy'] = '42' AND timestamp >= '2026-11-28T09:00:00Z'"


class InvalidConditionError(TidelogError):
    """A text that is no condition on records."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """A word in capitals, or a sign; "" for a literal."""
        return self.text.upper() if self.kind in ("word", "sign") else ""


def parse_where(text: str) -> Condition:
    """The condition that a text says. Raises `InvalidConditionError`."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidConditionError(f"A condition has at most {MOST_CHARACTERS} characters; this one has {len(text)}.")
    parser = _Parser(text, [*_tokens(text)])
    condition = parser.any_of(0)
    parser.end()
    return condition


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise _refusal(text, start, "no word, text, number or sign begins")
        kind = match.lastgroup or ""
        yield _Token(kind, match[kind], match.start(kind))
        at = match.end()


def _refusal(text: str, at: int, why: str) -> InvalidConditionError:
    return InvalidConditionError(
        f"This is no condition on records: at {text[at : at + 20]!r} (character {at + 1}) {why}. It compares key,"
        f" headers['name'] and timestamp, for example: {_EXAMPLE}."
    )


class _Parser:
    """Goes over the tokens of a text, from the weakest binding to the strongest."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._next = 0

    def any_of(self, depth: int) -> Condition:
        """Conditions between which OR stands."""
        if depth > MOST_DEPTH:
            raise InvalidConditionError(f"A condition has at most {MOST_DEPTH} parentheses in one another.")
        conditions = [self._all_of(depth)]
        while self._takes("OR"):
            conditions.append(self._all_of(depth))
        return conditions[0] if len(conditions) == 1 else Any_(tuple(conditions))

    def _all_of(self, depth: int) -> Condition:
        conditions = [self._single(depth)]
        while self._takes("AND"):
            conditions.append(self._single(depth))
        return conditions[0] if len(conditions) == 1 else All(tuple(conditions))

    def _single(self, depth: int) -> Condition:
        if self._takes("NOT"):
            if depth > MOST_DEPTH:
                raise InvalidConditionError(f"A condition has at most {MOST_DEPTH} times NOT in one another.")
            return Not(self._single(depth + 1))
        if self._takes("("):
            condition = self.any_of(depth + 1)
            self._expect(")")
            return condition
        return self._comparison(self._operand())

    def _operand(self) -> Operand:
        if self._takes("KEY"):
            return RecordKey()
        if self._takes("TIMESTAMP"):
            return Timestamp()
        if self._takes("HEADERS"):
            self._expect("[")
            name = self._text_value()
            self._expect("]")
            return HeaderValue(name)
        raise self._wrong("key, headers['name'] or timestamp is expected")

    def _comparison(self, operand: Operand) -> Condition:
        if self._takes("IS"):
            negated = self._takes("NOT")
            self._expect("NULL")
            return Not(IsNull(operand)) if negated else IsNull(operand)
        negated = self._takes("NOT")
        condition: Condition
        if self._takes("IN"):
            condition = self._one_of(operand)
        elif self._takes("LIKE"):
            if isinstance(operand, Timestamp):
                raise self._wrong("a timestamp is like nothing: compare it")
            condition = Like(operand, self._text_value())
        elif self._takes("BETWEEN"):
            low = Compare(operand, ">=", self._value(operand))
            self._expect("AND")
            condition = All((low, Compare(operand, "<=", self._value(operand))))
        elif negated:
            raise self._wrong("IN, LIKE or BETWEEN is expected")
        else:
            operator = next((sign for sign in ("=", "!=", "<>", "<=", ">=", "<", ">") if self._takes(sign)), None)
            if operator is None:
                raise self._wrong("a comparison is expected: =, !=, <, <=, >, >=, IN, LIKE, BETWEEN or IS NULL")
            return Compare(operand, "!=" if operator == "<>" else operator, self._value(operand))
        return Not(condition) if negated else condition

    def _one_of(self, operand: Operand) -> Condition:
        self._expect("(")
        values = [self._value(operand)]
        while self._takes(","):
            values.append(self._value(operand))
        self._expect(")")
        if isinstance(operand, Timestamp):
            return Any_(tuple(Compare(operand, "=", value) for value in values))
        return IsIn(operand, frozenset(value for value in values if isinstance(value, bytes)))

    def _value(self, operand: Operand) -> bytes | int:
        return self._time_us() if isinstance(operand, Timestamp) else self._bytes()

    def _bytes(self) -> bytes:
        token = self._take("text", "hex")
        if token.kind == "text":
            try:
                return token.text[1:-1].replace("''", "'").encode(errors="surrogateescape")
            except UnicodeEncodeError:
                raise _refusal(self._text, token.at, "there is half of a character, and so no text") from None
        try:
            return bytes.fromhex(token.text[2:-1])
        except ValueError:
            raise _refusal(self._text, token.at, "hexadecimal digits, two for each byte, are expected") from None

    def _text_value(self) -> str:
        """Of headers' names and patterns, which are text on disk and for Arrow."""
        at = self._peek().at
        try:
            return self._bytes().decode()
        except UnicodeDecodeError:
            raise _refusal(self._text, at, "UTF-8 is expected, for a header's name and for LIKE") from None

    def _time_us(self) -> int:
        token = self._take("text", "number")
        if token.kind == "number":
            if len(token.text) > _MOST_DIGITS or abs(int(token.text)) > _LONGEST_MS:
                raise _refusal(self._text, token.at, "ms since the epoch are expected, up to the year 9999")
            return int(token.text) * 1000
        try:
            time = datetime.fromisoformat(token.text[1:-1].strip())
        except ValueError:
            raise _refusal(self._text, token.at, "a time such as '2026-11-28T09:00:00Z' is expected") from None
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    # --- tokens --------------------------------------------------------------------------------------------

    def _peek(self) -> _Token:
        if self._next < len(self._tokens):
            return self._tokens[self._next]
        return _Token("end", "", len(self._text))

    def _takes(self, word: str) -> bool:
        there = self._peek().word == word
        self._next += there
        return there

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise self._wrong(f"{word} is expected")

    def _take(self, *kinds: str) -> _Token:
        token = self._peek()
        if token.kind not in kinds:
            raise self._wrong(f"a {' or '.join(kind for kind in kinds if kind != 'hex')} is expected")
        self._next += 1
        return token

    def _wrong(self, why: str) -> InvalidConditionError:
        return _refusal(self._text, self._peek().at, why)

    def end(self) -> None:
        """Refuse what follows the condition."""
        if self._next < len(self._tokens):
            raise self._wrong("AND, OR or the end is expected")

"""A kind of rows for tests: the newest value of each key; and tables of it in lakes in memory."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import pyarrow as pa
from support.logs import memory_lake, open_lake

from tidelog.log.lake import Lake
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.rows.schema import Row, RowSchema
from tidelog.log.rows.state import RowKind

NAME = "__words"


class WordsFold:
    """{key: value}; a row without a value takes the key away."""

    def __init__(self, words: dict[str, int] | None = None) -> None:
        self.words = words or {}

    def take(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if "value" in row:
                self.words[row["key"]] = row["value"]
            else:
                self.words.pop(row["key"], None)

    def fork(self) -> Self:
        return type(self)(dict(self.words))

    def __len__(self) -> int:
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordsFold) and self.words == other.words

    __hash__ = None  # type: ignore[assignment]


WORDS: RowKind[WordsFold] = RowKind(
    "words",
    RowSchema({"key": pa.string(), "value": pa.int64()}),
    WordsFold,
    lambda row: row["key"],
    lambda row: "value" not in row,
)


def says(key: str, value: int | None) -> Row:
    return {"key": key} if value is None else {"key": key, "value": value}


def put(log: RowLog[WordsFold], **words: int | None) -> None:
    """Append one row a word, as one entry."""
    log.commit(lambda _: RowOutcome([says(k, v) for k, v in words.items()], None))


def words(log: RowLog[WordsFold]) -> dict[str, int]:
    """What the table says at the head of its log."""
    return log.look(lambda fold: dict(fold.words))


class Table:
    """A table of words in a lake in memory, and other processes' views of it."""

    def __init__(self, hook: Callable[[str, str, str], None] = lambda *call: None, **config: str) -> None:
        self.lake, self.storage, self.clock = memory_lake(hook)
        self.lake.alter_config({k.replace("_", "."): v for k, v in config.items()})
        self.log = self.lake.row_log(NAME, WORDS)

    def reopened(self, **more: Any) -> RowLog[WordsFold]:
        """The table as a process sees it that starts now."""
        return self.lake_now(**more).row_log(NAME, WORDS)

    def lake_now(self, **more: Any) -> Lake:
        return open_lake(self.storage, self.clock, **more)

    def files(self) -> list[str]:
        return [o.path for o in self.storage.list_after(f"{NAME}/rows")]

    def entries(self) -> list[str]:
        return [o.path for o in self.storage.list_after(f"{NAME}/_delta_log") if o.path.endswith(".json")]

"""Reading the files of a table of rows."""

from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa

from tidelog.log.base.errors import CorruptSegmentError, ObjectNotFoundError
from tidelog.log.rows.schema import Row
from tidelog.log.rows.state import Fold, ReadRows, RowKind
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage.port import Storage

F = TypeVar("F", bound=Fold)


def file_reader(storage: Storage, table: str, kind: RowKind[F]) -> ReadRows:
    """What reads a table's files. It raises `CorruptSegmentError` naming the file."""

    def read(file: Segment) -> list[tuple[int, Row]]:
        path = f"{table}/{unquote(file.path)}"
        try:
            with storage.open(path, file.size) as source:
                rows = kind.schema.from_file(source, file.size)
        except ObjectNotFoundError as e:
            raise _corrupt(path, file, "is missing") from e
        except (pa.ArrowException, KeyError, OSError, ValueError) as e:
            raise _corrupt(path, file, f"can't be read ({e})") from e
        expected = file.stats.records
        if expected is not None and expected != len(rows):
            raise _corrupt(path, file, f"has {len(rows)} rows, its log entry says {expected}")
        return rows

    return read


def _corrupt(path: str, file: Segment, what: str) -> CorruptSegmentError:
    return CorruptSegmentError(
        f"File {path} (rows {file.base_offset} to {file.end}) {what}. What its rows said can't be known: restore the"
        " file from a copy. 'tidelog check --deep' finds every such file."
    )

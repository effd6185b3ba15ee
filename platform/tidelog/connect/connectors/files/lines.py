"""Lines of a growing file, with the position behind each."""

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidelog.connect.data.errors import ConnectError

CHUNK_BYTES: Final = 1 << 20
# \r alone ends a line too, as Java's readers have it; one at the end of what is read may be followed by \n.
_END: Final = re.compile(rb"\r\n|\n|\r(?!\Z)")


@dataclass(frozen=True)
class FileLine:
    """A line without its end. `end`: the position (bytes) behind its end."""

    data: bytes
    end: int


class LineReader:
    """Reads whole lines of a file from a position on; a last line without end is read when its end is there.

    `compressed`: the file is one of gzip, and positions are of what is in it; it must be whole when it appears.
    `whole`: so must it without, and its last line needs no end.
    """

    def __init__(self, path: Path, position: int = 0, *, compressed: bool = False, whole: bool = False) -> None:
        self._path, self._position = path, position
        self._compressed = compressed
        self._whole = whole
        self._unzipped: gzip.GzipFile | None = None  # open until its end is reached, for it can't be gone on from
        self._rest = b""

    def lines(self, most: int) -> list[FileLine]:
        """Return the next lines, up to `most`; [] where there is none, or no file yet.

        Raises `ConnectError` for a file shorter than the position: it isn't the file that was read before.
        """
        found = self._lines(most)
        if self._whole and len(found) < most and self._rest:
            self._position += len(self._rest)
            found.append(FileLine(self._rest.removesuffix(b"\r"), self._position))
            self._rest = b""
        return found

    def _lines(self, most: int) -> list[FileLine]:
        found = [*self._take(most)]
        if len(found) == most:
            return found
        if self._compressed:
            return found + self._unzipped_lines(most - len(found))
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, 2)
                if size < self._position:
                    raise ConnectError(
                        f"{self._path} has {size} bytes, and {self._position} were read: it was replaced or cut. "
                        "Give the new file another name, or reset the connector's offsets."
                    )
                file.seek(self._position + len(self._rest))
                while len(found) < most:
                    chunk = file.read(CHUNK_BYTES)
                    self._rest += chunk
                    found += self._take(most - len(found))
                    if not chunk:
                        break
        except FileNotFoundError:
            return []
        return found

    def _unzipped_lines(self, most: int) -> list[FileLine]:
        found: list[FileLine] = []
        try:
            if self._unzipped is None:
                self._unzipped = gzip.open(self._path, "rb")  # noqa: SIM115 - open until its end
                start = self._position + len(self._rest)
                if self._unzipped.seek(start) < start:
                    raise ConnectError(
                        f"{self._path} holds less than the {start} bytes that were read: it was replaced. Give the new"
                        " file another name, or reset the connector's offsets."
                    )
            while len(found) < most:
                chunk = self._unzipped.read(CHUNK_BYTES)
                self._rest += chunk
                found += self._take(most - len(found))
                if not chunk:
                    self._close()
                    break
        except FileNotFoundError:
            return found
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            self._close()
            raise ConnectError(
                f"{self._path} is no whole file of gzip: {error}. Rename only whole files into the folder."
            ) from error
        return found

    def _close(self) -> None:
        if self._unzipped is not None:
            self._unzipped.close()
            self._unzipped = None

    def _take(self, most: int) -> Iterator[FileLine]:
        start = 0
        for ending in _END.finditer(self._rest):
            if most == 0:
                break
            most -= 1
            yield FileLine(self._rest[start : ending.start()], self._position + ending.end())
            start = ending.end()
        self._rest = self._rest[start:]
        self._position += start

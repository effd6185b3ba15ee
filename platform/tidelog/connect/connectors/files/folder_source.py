"""A folder as a source: files as they arrive, each record once; and what becomes of them then."""

import logging
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tidelog.connect.config.definition import ConfigDef, ConfigValue, Importance
from tidelog.connect.config.values import FILLED, FLAG, PATTERN, TEXT, ConnectConfigError, as_written
from tidelog.connect.connectors.files.folder_formats import FileRecord, RecordReader, reader_of, refused
from tidelog.connect.connectors.files.stream import VERSION
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.data.records import SourceRecord
from tidelog.connect.spi.connectors import ExactlyOnceSupport, RawConfig, SourceConnector
from tidelog.connect.spi.sources import SourceTask, SourceTaskContext
from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.typed_values import names
from tidelog.log.config.key_type import int_of, long_of

_LOG: Final = logging.getLogger(__name__)
_TASK: Final = "tidelog.task"
_TASKS: Final = "tidelog.tasks"
_OPEN_FILES: Final = 100
SOURCE_FORMATS: Final = ("lines", "json", "csv", "parquet")
SOURCE_KEYS: Final = (
    ConfigDef()
    .define("input.path", FILLED, REQUIRED, Importance.HIGH, "The folder to read.")
    .define("topic", FILLED, REQUIRED, Importance.HIGH, "The topic for its records.")
    .define("input.file.pattern", PATTERN, ".*", Importance.HIGH,
            "The expression that names of files match as a whole.")
    .define("input.path.walk.recursively", FLAG, False, Importance.LOW, "Whether folders below count.")
    .define("format", names(*SOURCE_FORMATS), "lines", Importance.HIGH,
            "lines: a text for each; json: a JSON value for each line; csv: a struct for each row below a header; "
            "parquet: a struct for each row.")
    .define("csv.separator.char", FILLED, ",", Importance.LOW, "What separates columns.")
    .define("batch.size", int_of(1), 1000, Importance.LOW, "How many records a poll gives at most.")
    .define("halt.on.error", FLAG, True, Importance.HIGH,
            "Whether a line that is not of the format fails the task; otherwise it is logged and left out.")
    .define("cleanup.policy", as_written("NONE", "MOVE", "DELETE"), "NONE", Importance.HIGH,
            "What becomes of a file that was read: NONE leaves it, and it may grow; MOVE and DELETE take files as "
            "whole when they appear.")
    .define("finished.path", TEXT, "", Importance.HIGH, "Where cleanup.policy=MOVE moves files to.")
    .define("error.path", TEXT, "", Importance.HIGH,
            "Where files are moved to that have something that is not of the format, or can't be read; needs "
            "halt.on.error=false.")
    .define("file.minimum.age.ms", long_of(0), 0, Importance.LOW,
            "How long a file must be unchanged before it is read.")
    .define("empty.poll.wait.ms", long_of(1, 1000), 500, Importance.LOW,
            "How long a poll that finds nothing waits before the folder is listed again.")
)  # fmt: skip


class FolderCleanup:
    """Moves and deletes files, by the source's parsed keys.

    `takes_whole`: files come whole, and are gone when they were read: another file may have the same name then.
    `sets_aside`: files that can't be read are moved to error.path.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._folder = Path(values["input.path"])
        policy = values["cleanup.policy"].upper()
        self.takes_whole = policy != "NONE"
        self._finished = Path(values["finished.path"]) if policy == "MOVE" else None
        self._failed = Path(values["error.path"]) if values["error.path"] else None
        self.sets_aside = self._failed is not None and not values["halt.on.error"]

    def owns(self, path: Path) -> bool:
        """Whether a path is in one of the folders that files are moved to."""
        return any(one is not None and one in path.parents for one in (self._finished, self._failed))

    def end(self, name: str, failure: str | None) -> None:
        """Clean up after a file. `failure`: why it can't be read, None for one that was read whole.

        Raises `OSError` where the file can't be moved or deleted.
        """
        path = self._folder / name
        if failure is not None and self._failed is not None:
            _LOG.warning("Set aside: file=%s moved=%s error=%s", path, _moved(path, self._failed / name), failure)
        elif failure is None and self._finished is not None:
            _moved(path, self._finished / name)
        elif failure is None and self.takes_whole:
            path.unlink(missing_ok=True)


def _moved(path: Path, to: Path) -> Path:
    """Where a file is after it was moved: under a name of its own, where there is one of its name."""
    to.parent.mkdir(parents=True, exist_ok=True)
    free, number = to, 0
    while free.exists():
        number += 1
        free = to.with_name(f"{to.name}.{number}")
    try:
        shutil.move(path, free)
    except FileNotFoundError:  # moved by a task that was to be replaced
        if path.exists():
            raise
    return free


class FolderSourceTask(SourceTask):
    """Reads those files of a folder whose names fall to this task, in the order of their names."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Begin. Files are found with the first poll."""
        self._values: Mapping[str, Any] = SOURCE_KEYS.parse(config)
        self._context = context
        self._folder = Path(self._values["input.path"])
        self._pattern = re.compile(self._values["input.file.pattern"])
        self._number, self._of = int(config.get(_TASK, 0)), int(config.get(_TASKS, 1))
        self._cleanup = FolderCleanup(self._values)
        # The size that a file had when everything in it was read; it is opened again when it has grown.
        self._read_sizes: dict[str, int] = {}
        self._positions: dict[str, int] = {}
        self._readers: dict[str, RecordReader] = {}
        self._modified: dict[str, int] = {}  # of files that are taken as whole: which file of a name is read
        self._given: set[str] = set()  # files with records that are not stored yet
        self._ending: dict[str, str | None] = {}  # files to clean up when their records are stored, and why they fail

    def poll(self) -> Sequence[SourceRecord]:
        """Return the next records of the first file that has any."""
        for name, size in self._grown_files():
            try:
                kept = self._read(name, size)
            except (ConnectError, OSError) as error:
                if not self._cleanup.sets_aside:
                    raise
                kept, self._ending[name] = [], str(error)
            if kept:
                self._given.add(name)
                return kept
            self._clean_up()
        self._context.wait(self._values["empty.poll.wait.ms"] / 1000)
        return []

    def commit(self) -> None:
        """Clean up after files whose records are stored now."""
        self._given.clear()
        self._clean_up()

    def _read(self, name: str, size: int) -> list[SourceRecord]:
        reader = self._readers.get(name) or self._opened(name)
        records = reader.read(self._values["batch.size"])
        if len(records) < self._values["batch.size"]:
            self._read_sizes[name] = size
        kept = self._good(name, records)
        if self._cleanup.takes_whole and name in self._read_sizes:  # and did not halt
            self._ending.setdefault(name, None)
        return kept

    def _clean_up(self) -> None:
        for name in [one for one in self._ending if one not in self._given]:
            self._cleanup.end(name, self._ending.pop(name))
            for known in (self._read_sizes, self._positions, self._readers, self._modified):
                known.pop(name, None)

    def _grown_files(self) -> Iterator[tuple[str, int]]:
        """(name below the folder, bytes) of this task's files that have something unread, by name."""
        if not self._folder.is_dir():
            raise ConnectError(f"input.path {self._folder} is no folder. Create it, or correct the key.")
        walk = self._folder.rglob("*") if self._values["input.path.walk.recursively"] else self._folder.glob("*")
        oldest_ns = self._clock.now_ms() * 1_000_000 - self._values["file.minimum.age.ms"] * 1_000_000
        for path in sorted(walk):
            name = path.relative_to(self._folder).as_posix()
            if zlib.crc32(name.encode()) % self._of != self._number or not self._pattern.fullmatch(path.name):
                continue
            try:
                stat = path.stat()
            except FileNotFoundError:  # moved away since it was listed
                continue
            if not path.is_file() or name in self._ending or self._cleanup.owns(path):
                continue
            if self._values["file.minimum.age.ms"] and stat.st_mtime_ns > oldest_ns:
                continue
            unread = self._read_sizes.get(name, -1 if self._cleanup.takes_whole else 0)  # an empty file is cleaned up
            if stat.st_size != unread:
                self._modified.setdefault(name, stat.st_mtime_ns)
                yield name, stat.st_size

    def _opened(self, name: str) -> RecordReader:
        while len(self._readers) >= _OPEN_FILES:
            del self._readers[next(iter(self._readers))]
        position = self._positions.get(name)
        if position is None:
            stored = self._context.offset_storage_reader.offset({"file": name})
            position = 0 if stored is None or self._is_another(name, stored) else int(stored["position"])
        kind, separator = self._values["format"], self._values["csv.separator.char"]
        whole = self._cleanup.takes_whole
        self._readers[name] = reader_of(kind, self._folder / name, position, separator, whole=whole)
        return self._readers[name]

    def _is_another(self, name: str, stored: Mapping[str, Any]) -> bool:
        """Whether a file is another one of the same name than that which was read."""
        return self._cleanup.takes_whole and int(stored.get("modified", self._modified[name])) != self._modified[name]

    def _good(self, name: str, records: Sequence[FileRecord]) -> list[SourceRecord]:
        """The records that are of the format; those before one that halts the task are delivered before it fails."""
        kept: list[SourceRecord] = []
        for record in records:
            if record.failure:
                error = refused(self._folder / name, record)
                if self._values["halt.on.error"]:
                    if not kept:
                        raise error
                    self._read_sizes.pop(name, None)
                    del self._readers[name]  # the next poll begins at the failure
                    return kept
                if self._cleanup.sets_aside:
                    self._ending[name] = str(error)
                    return kept
                _LOG.warning("Left out: %s", error)
            else:
                kept.append(self._record(name, record))
            self._positions[name] = record.position
        return kept

    def _record(self, name: str, record: FileRecord) -> SourceRecord:
        return SourceRecord(
            topic=self._values["topic"],
            value=record.value,
            value_schema=record.schema,
            source_partition={"file": name},
            source_offset={"position": record.position, **self._which(name)},
        )

    def _which(self, name: str) -> dict[str, int]:
        return {"modified": self._modified[name]} if self._cleanup.takes_whole else {}


class FolderSource(SourceConnector):
    """Files of a folder, as they arrive."""

    names = ("tidelog.connect.FolderSource", "FolderSource")
    version = VERSION
    guarantee = (
        "Exactly once: a record's position in its file is stored with it. A file is known by its name; with a "
        "cleanup.policy it is moved or deleted once its records are stored."
    )
    task_class = FolderSourceTask
    keys = SOURCE_KEYS  # by the spool directory connectors' names where they have one

    @classmethod
    def check_together(cls, values: Mapping[str, ConfigValue]) -> None:
        """As of `Connector`."""
        moves = str(values["cleanup.policy"].value).upper() == "MOVE"
        if moves and not values["finished.path"].value:
            values["finished.path"].errors.append(
                "cleanup.policy=MOVE needs finished.path: the folder for finished files."
            )
        if values["error.path"].value and values["halt.on.error"].value:
            values["error.path"].errors.append("error.path needs halt.on.error=false: else such a file fails the task.")
        for name in ("finished.path", "error.path"):
            if values[name].value and values[name].value == values["input.path"].value:
                values[name].errors.append(f"{name} is input.path: its files would be read again. Give another folder.")

    @classmethod
    def exactly_once_support(cls, config: RawConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Every record has a position."""
        return ExactlyOnceSupport.SUPPORTED

    def start(self, config: RawConfig, context: Any) -> None:
        """Check the folder. Raises `ConnectConfigError` where there is none."""
        super().start(config, context)
        folder = SOURCE_KEYS.parse(config)["input.path"]
        if not Path(folder).is_dir():
            raise ConnectConfigError(f"input.path {folder} is no folder. Create it, or correct the key.")

    def task_configs(self, max_tasks: int) -> Sequence[RawConfig]:
        """Share the files among the tasks, by their names."""
        return [{**self.config, _TASK: str(number), _TASKS: str(max_tasks)} for number in range(max_tasks)]

"""Engines that don't look at a table's protocol: what they leave in the folder of a table of tidelog's."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from tidelog.log.delta import layout


@contextmanager
def careless(table: Path) -> Iterator[str]:
    """The address of a copy that any engine writes to; what it stores there comes into `table` at the end.

    The copy has the entries alone, no checkpoint, and claims Delta's oldest protocol. Whatever the engine writes
    besides entries and data files stays behind.
    """
    with TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(table, Path(folder) / table.name, ignore=_checkpoints))
        first = copy / layout.entry_path(0)
        lines = [orjson.loads(line) for line in first.read_bytes().splitlines()]
        for line in lines:
            if "protocol" in line:
                line["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 2}
            if "metaData" in line:
                line["metaData"]["configuration"].pop("delta.enableExpiredLogCleanup", None)
        first.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        yield str(copy)
        for new in sorted(p for p in copy.rglob("*") if p.is_file() and not (table / p.relative_to(copy)).exists()):
            if new.suffix == ".parquet" or layout.entry_version(new.name) is not None:
                to = table / new.relative_to(copy)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(new, to)


def _checkpoints(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if ".checkpoint" in name or name == "_last_checkpoint"]

"""Before which offsets to delete records: from options, and from the file of Kafka's kafka-delete-records."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

_OFFSET = re.compile(r"([0-9]+):(-1|[0-9]+)")
_ENTRY_KEYS = {"topic", "partition", "offset"}


def offsets_from_options(texts: Sequence[str]) -> dict[int, int]:
    """`["0:1500", "1:-1"]` as {0: 1500, 1: -1}. Raises `typer.BadParameter`."""
    found: dict[int, int] = {}
    for text in texts:
        match = _OFFSET.fullmatch(text.strip())
        if match is None:
            raise typer.BadParameter(
                f"{text!r} is not of the form PARTITION:OFFSET, such as 0:1500, or 0:-1 for all records.",
                param_hint="--offset",
            )
        _put(found, int(match[1]), int(match[2]), "--offset")
    return found


def offsets_from_file(path: Path, topic: str) -> dict[int, int]:
    """The file's offsets by partition. Raises `typer.BadParameter`, also when it names another topic.

    Source: the JSON of `kafka-delete-records.sh --offset-json-file`.
    """
    option = "--offset-json-file"
    try:
        body = json.loads(path.read_bytes())
    except ValueError as e:
        raise typer.BadParameter(f"{path} is not JSON: {e}.", param_hint=option) from None
    entries = body.get("partitions") if isinstance(body, dict) else None
    if not isinstance(entries, list) or not entries:
        raise typer.BadParameter(
            f'{path} has no list "partitions"; it looks like {{"partitions": [{{"topic": "{topic}", "partition": 0,'
            ' "offset": 1500}], "version": 1}.',
            param_hint=option,
        )
    if body.get("version", 1) != 1:
        raise typer.BadParameter(f"{path} has version {body['version']!r}; only 1 is known.", param_hint=option)
    found: dict[int, int] = {}
    for entry in entries:
        _check_entry(entry, path, topic)
        _put(found, entry["partition"], entry["offset"], option)
    return found


def _check_entry(entry: Any, path: Path, topic: str) -> None:
    whole = isinstance(entry, dict) and entry.keys() == _ENTRY_KEYS
    if not whole or not all(type(entry[k]) is int for k in ("partition", "offset")):
        raise typer.BadParameter(
            f"{path} has the entry {json.dumps(entry)}; each needs topic, partition and offset, the last two as"
            " numbers.",
            param_hint="--offset-json-file",
        )
    if entry["topic"] != topic:
        raise typer.BadParameter(
            f"{path} names topic {entry['topic']!r}, but this deletes records of {topic!r}. Give each topic its own"
            " file.",
            param_hint="--offset-json-file",
        )


def _put(found: dict[int, int], partition: int, offset: int, option: str) -> None:
    if partition in found:
        raise typer.BadParameter(f"Partition {partition} is given twice.", param_hint=option)
    found[partition] = offset

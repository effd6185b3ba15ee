"""What the documents must agree with the code in: examples, names, and the tables of configuration keys.

Run as a file it writes the tables of docs/configuration.md, docs/kafka-configuration.md and docs/spark.md.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

from tidy_references import endings
from tidy_repository import ROOT

from tidelog.log.base.keys import FieldKey
from tidelog.log.config.kafka_brokers import PASSED_OVER, PASSED_OVER_BEGINNINGS
from tidelog.log.config.overrides import Settings, keys_of
from tidelog.log.config.refused import REFUSED_FOR_TOPICS
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.storage.option_table import OPTIONS
from tidelog.sinks.options import SINK_OPTIONS
from tidelog.sources.options import SOURCE_OPTIONS

CONFIGURATION = "docs/configuration.md"
KAFKAS_FILES = "docs/kafka-configuration.md"
SPARK = "docs/spark.md"

_TABLE = re.compile(r"(<!-- table: (.*?) -->\n\n).*?(\n\n<!-- end of table -->)", re.DOTALL)
_FENCE = re.compile(r"^```json(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# The first folder of names that are no file here: another project's, what is made, and what is in a lake.
ELSEWHERE = ("pyspark", "build", "dist", "_tidelog", "tidelog")

# Keys that only maintenance reads.
WAITING = frozenset(
    {
        "delete.retention.ms",
        "max.compaction.lag.ms",
        "merge.compression.level",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "retention.bytes",
        "retention.ms",
        "segment.ms",
    }
)


def json_examples(text: str) -> list[tuple[str, list[Any]]]:
    """The JSON blocks of a document: (the name after the fence's `json`, its objects one after another).

    Raises ValueError where one does not parse.
    """
    return [(name, list(_objects(body))) for name, body in _FENCE.findall(text)]


def _objects(body: str) -> Iterable[Any]:
    decoder, at = json.JSONDecoder(), 0
    while body[at:].strip():
        at += len(body[at:]) - len(body[at:].lstrip())
        found, at = decoder.raw_decode(body, at)
        yield found


def constants(module: ModuleType) -> dict[str, str]:
    """The public text constants of a module."""
    return {n: v for n, v in vars(module).items() if n.isupper() and not n.startswith("_") and isinstance(v, str)}


def unnamed(wanted: Mapping[str, str], text: str) -> list[str]:
    """The constants whose value a text does not name."""
    return sorted(name for name, value in wanted.items() if value not in text)


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """A page with each table between its marks (`<!-- table: NAME -->`) as `tables` have it.

    Raises KeyError for a mark without a table, ValueError for a table without a mark.
    """
    if missing := set(tables) - {name for _, name, _ in _TABLE.findall(page)}:
        raise ValueError(f"the page has no mark for {sorted(missing)}")
    return _TABLE.sub(lambda found: found[1] + tables[found[2]] + found[3], page)


def unknown_files(text: str, files: Collection[str]) -> list[str]:
    """Python files, and folders, that a text names (`folder/file.py`, `folder/`) and that are not there.

    A name may leave out the folders in front. Names of other projects' packages are left alone.
    """
    ends = endings(files)
    folders = {f"{folder}/" for end in ends for folder in map(str, PurePosixPath(end).parents)}
    named = re.findall(r"`((?:[\w-]+/)*\w+\.py|(?:\w+/)+)`", text)
    return [name for name in named if name not in ends | folders and name.split("/")[0] not in ELSEWHERE]


def configuration_tables() -> dict[str, str]:
    """The tables of docs/configuration.md as the code would have them, by name."""
    topic = [
        (
            _marked(row.name),
            f"`{row.value}`" if row.value else "nothing",
            key.kind.allowed,
            row.doc,
            f"`{key.lake_name}`" if key.inherits else "none",
        )
        for row in TopicConfig.parse({}).describe()
        for key in [TopicConfig.KEYS[row.name]]
    ]
    lake = [
        (
            _marked(row.name),
            f"`{row.value}`" if row.value else "nothing",
            LakeConfig.KEYS[row.name].kind.allowed,
            row.doc,
        )
        for row in LakeConfig.parse({}).describe()
        if row.name in keys_of(LakeConfig)
    ]
    refused = [(f"`{key}`", why) for key, why in sorted(REFUSED_FOR_TOPICS.items())]
    return {
        "keys of a topic": table(("key", "default", "takes", "meaning", "the lake's name for the default"), topic),
        "keys of a lake": table(("key", "default", "takes", "meaning"), lake),
        "options of a store": table(("option", "in the environment", "takes", "meaning"), _store_rows()),
        "refused keys": table(("key of a topic", "why it would do nothing"), refused),
    }


def kafka_tables() -> dict[str, str]:
    """The tables of docs/kafka-configuration.md as the code would have them, by name."""
    by_reason: dict[str, list[str]] = {}
    for key, why in sorted(PASSED_OVER.items()):
        by_reason.setdefault(why, []).append(f"`{key}`")
    for begin, why in sorted(PASSED_OVER_BEGINNINGS.items()):
        by_reason.setdefault(why, []).append(f"`{begin}…`")
    rows = [(", ".join(keys), why) for why, keys in by_reason.items()]
    return {"passed over": table(("keys", "why"), rows)}


def spark_tables() -> dict[str, str]:
    """The tables of docs/spark.md as the code would have them, by name."""

    def rows(options: Iterable[FieldKey]) -> list[tuple[str, ...]]:
        usual = ((one, one.unset or (one.usual and f"`{one.usual}`")) for one in options)
        return [(f"`{one.name}`", default, one.doc) for one, default in usual]

    return {
        f"options of the {side}": table((f"{side}, batch and streaming", "default", "meaning"), rows(options))
        for side, options in (("source", SOURCE_OPTIONS), ("sink", SINK_OPTIONS))
    }


def _store_rows() -> list[tuple[str, ...]]:
    return [
        (
            f"`{option.name}`",
            ", ".join(f"`{name}`" for name in option.variables),
            option.kind.allowed + (", secret" if option.secret else ""),
            option.doc,
        )
        for option in OPTIONS
    ]


def undocumented(settings: type[Settings], page: str) -> list[str]:
    """The keys that a page does not list."""
    return [name for name in settings.KEYS if f"`{name}`" not in page]


def _marked(key: str) -> str:
    return f"`{key}`{' *' if key in WAITING else ''}"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


# {page: its tables}
PAGES = {CONFIGURATION: configuration_tables, KAFKAS_FILES: kafka_tables, SPARK: spark_tables}

if __name__ == "__main__":
    for name, tables in PAGES.items():
        page = ROOT / name
        page.write_text(with_tables(page.read_text(encoding="utf-8"), tables()), encoding="utf-8")

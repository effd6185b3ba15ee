"""What the documents must agree with the code in: examples, names, and the page of configuration keys.

Run as a file it writes docs/configuration.md.
"""

import json
import re
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from tidy_repository import ROOT

from tidelog.log.config.overrides import Settings, keys_of
from tidelog.log.config.refused import REFUSED_FOR_LAKES, REFUSED_FOR_TOPICS
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.storage.option_table import OPTIONS

CONFIGURATION = "docs/configuration.md"

_FENCE = re.compile(r"^```json(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

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

_PAGE = """\
# Configuration

The keys of topics and of lakes: Kafka's names, types and checks, and Kafka 4's defaults; and the options of a lake's
object store. This page is made from the
code by `.venv/bin/python tests/tidy/tidy_docs.py`; a test compares the two.

A key is stored only where somebody set it. A topic takes what it does not set from its lake, under the name in the
last column, and what nobody sets from the defaults below. Values are texts and are trimmed. A key that is unknown is
refused with the nearest known one, and a key of Kafka's that would do nothing here with the reason.

Keys marked * take effect when maintenance runs (`tidelog maintain`, or the Spark jobs of the same name); nothing acts
on them in between. `cleanup.policy=compact` at once refuses records without a key, and by itself refuses to delete
records by offset.

## A topic

`lake.create_topic(name, config={{...}})`, `lake.alter_topic(name, config={{...}})`, `tidelog topic alter`.

{topic}

## A lake

`lake.alter_config({{...}})`, `tidelog lake alter`. These are the lake's own; besides, it takes each topic key's
default under its name in the last column above.

Running programs go by a change without being started again: by a topic's from their next commit on, since it is an
entry of the topic's log; by the lake's, its topics' defaults among it, within 10 s, which is how often a program looks;
a Spark task by what held when its batch began. Three keys are not live: `num.partitions` and `topic.max.partitions`
count for topics that are created, or grow, later, and `offsets.topic.num.partitions` is fixed once a group has
committed.

`topic.max.partitions` may be raised. A topic of 100,000 partitions with one record in it, measured once on 2 cores:
creating it takes 0.3 s and 12 MB, listing topics nothing to speak of, describing it 0.4 s and 12 MB, a producer's first
record 1 s and 51 MB, `AdminClient.list_topics` 1.2 s and 36 MB, and a group's first member 9 s and 143 MB until its
first record. Records cost more than partitions: each append writes a file for each partition that it touches.

{lake}

## A lake's store

How an object store is reached. Every entrance takes these options: `tidelog.Lake(uri, options={{...}})`; the dict of a
client (`Producer`, `Consumer`, `AdminClient`) and `format("tidelog")` among their own; commands and jobs as
`--store-option KEY=VALUE`. What they leave open the environment says, and then the machine's own role. Keep secrets in
the environment of each machine that takes part, Spark's executors included: a command's line can be read by others.
Nothing that tidelog prints, logs or stores holds a secret, and Spark's plans show none. An option that is unknown is
refused with the nearest known one.

An access key, its secret and its token go together: where options name one, none is taken from the environment.
obstore's own configuration keys (`region`, `checksum_algorithm`, ...) are taken as well, by `tidelog.Lake` and in a
client's `storage.options`.

{store}

## Refused

{refused}
"""


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


def configuration_page() -> str:
    """docs/configuration.md as the code would have it."""
    topic = [
        (_marked(row.name), f"`{row.value}`", TopicConfig.KEYS[row.name].kind.allowed, row.doc, f"`{lake_name}`")
        for row in TopicConfig.parse({}).describe()
        for lake_name in [TopicConfig.KEYS[row.name].lake_name]
    ]
    lake = [
        (_marked(row.name), f"`{row.value}`", LakeConfig.KEYS[row.name].kind.allowed, row.doc)
        for row in LakeConfig.parse({}).describe()
        if row.name in keys_of(LakeConfig)
    ]
    refused = [
        (f"`{key}`", level, why)
        for level, keys in (("topic", REFUSED_FOR_TOPICS), ("lake", REFUSED_FOR_LAKES))
        for key, why in sorted(keys.items())
    ]
    return _PAGE.format(
        topic=_table(("key", "default", "takes", "meaning", "the lake's name for the default"), topic),
        lake=_table(("key", "default", "takes", "meaning"), lake),
        store=_table(("option", "in the environment", "takes", "meaning"), _store_rows()),
        refused=_table(("key", "of a", "why it would do nothing"), refused),
    )


def _store_rows() -> list[tuple[str, ...]]:
    takes = {
        "text": "text",
        "flag": "true or false",
        "ms": "milliseconds, at least 1",
        "count": "a whole number of at least 0",
    }
    return [
        (
            f"`{option.name}`",
            ", ".join(f"`{name}`" for name in option.variables),
            takes[option.kind] + (", secret" if option.secret else ""),
            option.doc,
        )
        for option in OPTIONS
    ]


def undocumented(settings: type[Settings], page: str) -> list[str]:
    """The keys that a page does not list."""
    return [name for name in settings.KEYS if f"`{name}`" not in page]


def _marked(key: str) -> str:
    return f"`{key}`{' *' if key in WAITING else ''}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    (ROOT / CONFIGURATION).write_text(configuration_page(), encoding="utf-8")

"""Topics: listed, created and deleted; of one its partitions, configuration, history and consumers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.errors import ConsoleError, bad
from tidelog.console.sampler import Sampler
from tidelog.log.base.errors import ObjectNotFoundError, TidelogError
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, Entry, Metadata, Remove, Txn, decode_entry
from tidelog.log.rules import names
from tidelog.log.state.descriptions import describe
from tidelog.log.state.topic_state import TopicState
from tidelog.operations.groups import describe_group
from tidelog.operations.rights import Right
from tidelog.operations.snapshots import LakeSnapshot
from tidelog.operations.topics import read_topic

_MOST_LISTED: Final = 1_000
_SETTINGS: Final = ("retention_ms", "retention_bytes", "cleanup", "typed")
_FIGURES: Final = ("partitions", "records", "bytes", "files")
# What is not known yet comes with the smallest.
_SORTS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "name": lambda row: row["name"],
    "partitions": lambda row: row["partitions"] or 0,
    "records": lambda row: row["records"] or 0,
    "bytes": lambda row: row["bytes"] or 0,
    "rate": lambda row: row["rate"] or 0.0,
    # Kafka's -1 means for ever.
    "retention": lambda row: float("inf") if (row["retention_ms"] or 0) < 0 else row["retention_ms"] or 0,
}
_MOST_ENTRIES: Final = 500
# What the page offers, by Kafka's operations.
_CHANGES: Final[Mapping[str, Right]] = {
    "write": Right.WRITE_RECORDS,
    "alter": Right.ADD_PARTITIONS,
    "alter_configs": Right.ALTER_CONFIG,
    "delete": Right.DELETE_TOPIC,
}


def topics(call: ConsoleCall) -> Any:
    """One page of the topics that the client sees, those with `search` in their names, in any case of letters.

    While the lake is first looked at, `unread` topics have nothing but their names.
    """
    search = call.text("search").lower()
    sort = call.choice("sort", "name", tuple(_SORTS))
    falling = call.choice("order", "asc", ("asc", "desc")) == "desc"
    offset, limit = call.number("offset", 0), call.number("limit", 100, 1, _MOST_LISTED)
    sample = call.console.part(Sampler).sample_soon()
    defaults = call.console.lake.config()
    unread = set(sample.snapshot.unread)
    rows: list[dict[str, Any]] = []
    for name in (*sample.topics, *unread):
        if search in name.lower() and call.rights.sees_topic(name):
            one, rate = sample.topics.get(name), sample.rates.get(name)
            row = {"name": name, **{figure: getattr(one, figure, None) for figure in _FIGURES}}
            rows.append(row | {"rate": rate, "internal": names.is_internal(name)})
    if sort == "retention":
        _add_settings(rows, sample.snapshot, defaults)
    rows.sort(key=_SORTS["name"])
    rows.sort(key=_SORTS[sort], reverse=falling)
    internal = sum(row["internal"] for row in rows)
    page = rows[offset : offset + limit]
    _add_settings(page, sample.snapshot, defaults)
    for row in page:
        row["may_delete"] = call.offers(Right.DELETE_TOPIC, topic=row["name"])
    seen = sum(map(call.rights.sees_topic, unread))
    return {"total": len(rows), "internal": internal, "unread": seen, "topics": page}


def _add_settings(rows: Iterable[dict[str, Any]], snapshot: LakeSnapshot, defaults: LakeConfig) -> None:
    for row in rows:
        state = snapshot.topics.get(row["name"])
        row.update(dict.fromkeys(_SETTINGS) if state is None else topic_settings(state, defaults))


def topic_settings(state: TopicState, defaults: LakeConfig) -> dict[str, Any]:
    """What lists say of a topic's configuration."""
    config = TopicConfig.stored(state.overrides, defaults=defaults)
    return {
        "retention_ms": config.retention_ms,
        "retention_bytes": config.retention_bytes,
        "cleanup": ",".join(config.cleanup_policy),
        "typed": config.value_columns != "none",
    }


def create_topic(call: ConsoleCall) -> Any:
    """Create a topic."""
    body = call.fields("name", "partitions", "config")
    name, partitions, config = body.get("name"), body.get("partitions"), body.get("config") or {}
    if not isinstance(name, str) or not isinstance(config, dict):
        raise bad("'name' must be a text, and 'config' an object of texts.")
    if not (partitions is None or (isinstance(partitions, int) and not isinstance(partitions, bool))):
        raise bad("'partitions' must be a whole number.")
    if not all(isinstance(value, str) for value in config.values()):
        raise bad("'config' must be an object of texts: a number is written as one.")
    call.rights.require(Right.CREATE_TOPIC, topic=name)
    made = call.console.lake.create_topic(name, partitions, config)
    call.console.invalidate()
    return {"name": made.name, "id": made.id, "partitions": len(made.partitions)}


def delete_topic(call: ConsoleCall) -> Any:
    """Delete a topic whose name is typed again."""
    if call.fields("confirm").get("confirm") != call.topic:
        raise ConsoleError(400, "'confirm' must be the topic's name: with the topic go all of its records.")
    call.console.lake.delete_topic(call.topic)
    call.console.invalidate()
    return {"deleted": call.topic}


def state_of(call: ConsoleCall) -> TopicState:
    """The path's topic as it is now. Raises `UnknownTopicError`."""
    return read_topic(call.console.lake, call.topic)


def topic(call: ConsoleCall) -> Any:
    """A topic with each of its partitions."""
    name, lake = call.topic, call.console.lake
    state = state_of(call)
    settings = topic_settings(state, lake.config())
    snapshot = call.console.latest()
    seen = [
        group
        for group, view in snapshot.groups.items()
        if call.rights.sees_group(group) and any(of == name for of, _ in view.offsets)
    ]
    return {
        "name": name,
        "id": state.topic_id,
        "partitions": [
            {
                "partition": partition.partition,
                "start": partition.start,
                "end": partition.end,
                "records": partition.end - partition.start,
                "bytes": partition.bytes,
                "segments": partition.segments,
                "newest_ms": state.live(partition.partition)[-1].stats.max_timestamp_ms if partition.segments else None,
            }
            for partition in describe(state, name).partitions
        ],
        "config": settings,
        "overrides": state.overrides,
        "typed": settings["typed"],
        "groups": None if snapshot.unread else len(seen),
        "may": {change: call.offers(right, topic=name) for change, right in _CHANGES.items()},
        "table": f"{lake.uri}/{name}",
        "version": state.version,
    }


def config(call: ConsoleCall) -> Any:
    """All keys of a topic: the value in force, the default, where the value was set, what the key does."""
    state = state_of(call)
    keys = TopicConfig.stored(state.overrides, defaults=call.console.lake.config()).describe()
    return {
        "configs": [
            {
                "name": key.name,
                "value": key.value,
                "default": key.values[-1].text,
                "source": key.source,
                "read_only": False,
                "sensitive": False,
                "doc": key.doc,
                "type": key.kind.allowed,
            }
            for key in keys
        ]
    }


def change_config(call: ConsoleCall) -> Any:
    """Set and reset keys of a topic."""
    body = call.fields("set", "reset")
    wanted, reset = body.get("set") or {}, body.get("reset") or []
    if not isinstance(wanted, dict) or not all(isinstance(value, str) for value in wanted.values()):
        raise bad("'set' must be an object of texts.")
    if not isinstance(reset, list) or not all(isinstance(name, str) for name in reset):
        raise bad("'reset' must be a list of keys.")
    state_of(call)
    both = sorted(set(wanted) & set(reset))
    if both:
        raise bad(f"{both[0]!r} is both set and reset.")
    call.console.lake.alter_topic(call.topic, config={**wanted, **dict.fromkeys(reset)})
    call.console.invalidate()
    return config(call)


def grow(call: ConsoleCall) -> Any:
    """Give a topic more partitions."""
    partitions = call.fields("partitions").get("partitions")
    if not isinstance(partitions, int) or isinstance(partitions, bool):
        raise bad("'partitions' must be a whole number.")
    state_of(call)
    call.console.lake.alter_topic(call.topic, partitions)
    call.console.invalidate()
    return topic(call)


def history(call: ConsoleCall) -> Any:
    """The newest entries of a topic's log, the newest first."""
    limit = call.number("limit", 50, 1, _MOST_ENTRIES)
    lake, name = call.console.lake, call.topic
    state = state_of(call)
    newest = min(call.number("before", state.version + 1), state.version + 1) - 1
    oldest = max(lake.oldest_version(name), newest - limit + 1)
    folder = lake.topic(name).folder
    entries = []
    for version in range(newest, oldest - 1, -1):
        path = f"{folder}/{layout.entry_path(version)}"
        try:
            entries.append(entry_shown(decode_entry(version, lake.storage.get(path), path)))
        except ObjectNotFoundError:  # maintenance has deleted it meanwhile
            break
        except TidelogError as error:
            entries.append(ShownEntry(version, None, "?", "?", str(error))._asdict())
    return {"entries": entries}


class ShownEntry(NamedTuple):
    """An entry of a topic's log, in a history."""

    version: int
    at_ms: int | None
    operation: str
    who: str
    what: str


def entry_shown(entry: Entry) -> Mapping[str, Any]:
    """An entry as people read it."""
    adds = [one for one in entry.actions if isinstance(one, Add)]
    removes = [one for one in entry.actions if isinstance(one, Remove)]
    said = []
    new = [one for one in adds if one.data_change]
    if new:
        records = sum((one.end or one.base_offset) - one.base_offset for one in new)
        partitions = len({one.partition for one in new})
        said.append(f"{records:,} offsets in {partitions} partitions, {sum(one.size for one in new):,} bytes")
    if len(adds) > len(new):
        said.append(f"{len(adds) - len(new)} files written again")
    if removes:
        said.append(f"{len(removes)} files out of the table, {sum(one.size for one in removes):,} bytes")
    if any(isinstance(one, Metadata) for one in entry.actions):
        said.append("configuration or schema")
    ids = [
        one.app_id
        for one in entry.actions
        if isinstance(one, Txn) and not one.app_id.startswith((layout.END_PREFIX, layout.START_PREFIX))
    ]
    if ids:
        said.append("ids " + ", ".join(ids[:5]) + (", …" if len(ids) > 5 else ""))
    if entry.touched is not None:
        said.append(f"by {entry.touched.by}: takes no effect, and is taken back")
    by = "tidelog" if entry.info.request_id else (entry.touched.by if entry.touched else "another engine")
    what = "; ".join(said) or "nothing that readers see"
    return ShownEntry(entry.version, entry.info.timestamp_ms or None, entry.info.operation, by, what)._asdict()


def consumers(call: ConsoleCall) -> Any:
    """The groups that have offsets of a topic."""
    state_of(call)
    snapshot = call.console.snapshot()
    groups = []
    for name, view in snapshot.groups.items():
        if not call.rights.sees_group(name) or not any(of == call.topic for of, _ in view.offsets):
            continue
        description = describe_group(snapshot, name)
        groups.append(
            {
                "group": name,
                "state": str(description.group.phase),
                "members": description.lag.members,
                "lag": description.lag.by_topic.get(call.topic, 0),
            }
        )
    return {"groups": groups}

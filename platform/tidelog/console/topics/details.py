"""One topic: its partitions, configuration, history and consumers."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.errors import bad
from tidelog.console.topics.listing import topic_settings
from tidelog.log.base.errors import ObjectNotFoundError, TidelogError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, Entry, Metadata, Remove, Txn, decode_entry
from tidelog.log.state.descriptions import describe
from tidelog.log.state.topic_state import TopicState
from tidelog.operations.groups import describe_group
from tidelog.operations.rights import Right
from tidelog.operations.topics import read_topic

_MOST_ENTRIES: Final = 500
# What the page offers, by Kafka's operations.
_CHANGES: Final[Mapping[str, Right]] = {
    "write": Right.WRITE_RECORDS,
    "alter": Right.ADD_PARTITIONS,
    "alter_configs": Right.ALTER_CONFIG,
    "delete": Right.DELETE_TOPIC,
}


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
                "partition": one.partition,
                "start": one.start,
                "end": one.end,
                "records": one.end - one.start,
                "bytes": one.bytes,
                "segments": one.segments,
                "newest_ms": state.live(one.partition)[-1].stats.max_timestamp_ms if one.segments else None,
            }
            for one in describe(state, name).partitions
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
    found = []
    for name, view in snapshot.groups.items():
        if not call.rights.sees_group(name) or not any(of == call.topic for of, _ in view.offsets):
            continue
        description = describe_group(snapshot, name)
        found.append(
            {
                "group": name,
                "state": str(description.group.phase),
                "members": description.lag.members,
                "lag": description.lag.by_topic.get(call.topic, 0),
            }
        )
    return {"groups": found}

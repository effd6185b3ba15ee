"""Topics: listed, searched, sorted; created and deleted."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.errors import ConsoleError, bad
from tidelog.console.live.sampler import Sampler
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.rules import names
from tidelog.log.state.topic_state import TopicState
from tidelog.operations.rights import Right
from tidelog.operations.snapshots import LakeSnapshot

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

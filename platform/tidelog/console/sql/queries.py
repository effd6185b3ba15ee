"""Requests for queries: begun, looked at, and cancelled."""

from collections.abc import Iterable
from typing import Any

import orjson

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.console import Console
from tidelog.console.base.errors import bad
from tidelog.console.sql.sandbox import Readable, SqlSandbox
from tidelog.log.state.topic_state import TopicState
from tidelog.operations.rights import Right
from tidelog.server.logins import LoginRefusedError


class ConsoleSql(SqlSandbox):
    """The console's queries."""

    def __init__(self, console: Console) -> None:
        super().__init__(console.lake.storage, console.lake.clock, console.lake.ids)


def start(call: ConsoleCall) -> Any:
    """Have a query run over the topics whose records the client may read."""
    body = call.fields("query", "limit")
    query, limit = body.get("query"), body.get("limit")
    if not isinstance(query, str) or not (limit is None or type(limit) is int):
        raise bad("'query' must be a text, and 'limit' a whole number.")
    return {"id": call.console.part(ConsoleSql).start(query, _owner(call), readable(call), limit)}


def readable(call: ConsoleCall) -> Readable:
    """The topics whose records the client may read."""
    lake = call.console.lake

    def may(name: str) -> bool:  # a query lasts, and a right may end before it
        return call.rights.now().may(Right.READ_RECORDS, topic=name)

    def stands(names: Iterable[str]) -> bool:
        try:
            rights = call.rights.now()
        except LoginRefusedError:
            return False
        return all(rights.may(Right.READ_RECORDS, topic=name) for name in names)

    def topics() -> list[str]:
        return [name for name in call.console.snapshot().topics if may(name)]

    def state(name: str) -> TopicState | None:
        return lake.peek(name) if name in call.console.snapshot().topics and may(name) else None

    return Readable(topics, state, stands)


def look(call: ConsoleCall) -> Any:
    """How far a query is, and its rows."""
    found = call.console.part(ConsoleSql).look(call.variables["id"], _owner(call), call.number("offset", 0))
    return {**found, "rows": [orjson.Fragment(row) for row in found["rows"]]}


def cancel(call: ConsoleCall) -> Any:
    """End a query."""
    call.console.part(ConsoleSql).cancel(call.variables["id"], _owner(call))
    return {"cancelled": call.variables["id"]}


def _owner(call: ConsoleCall) -> str:
    return str(call.rights.client.principal)

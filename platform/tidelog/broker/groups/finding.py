"""FindCoordinator: which broker coordinates a group or a transactional id (KIP-699)."""

from collections.abc import Mapping
from typing import Any, Final

from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import COORDINATOR_NOT_AVAILABLE, INVALID_REQUEST

_KINDS: Final = {0: "group", 1: "transaction"}


class FindingHandlers:
    """Coordinators by group and transactional id."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def handlers(self) -> Handlers:
        """By API."""
        return {ApiKey.FIND_COORDINATOR: self.find}

    async def find(self, call: Call) -> Reply:
        """FindCoordinator: one key, or several from version 4 on."""
        body = call.body
        kind = _KINDS.get(getattr(body, "key_type", 0))
        if call.version < 4:
            return self._found(body.key, kind, call.peer.listener)
        return {
            "coordinators": [
                {"key": key, **self._found(key, kind, call.peer.listener)} for key in body.coordinator_keys
            ]
        }

    def _found(self, key: str, kind: str | None, listener: str) -> Mapping[str, Any]:
        if kind is None:
            return _none(INVALID_REQUEST, "Only groups and transactions have coordinators.")
        node = self._context.cluster().coordinator(kind, key)
        address = node.addresses.get(listener)
        if address is None:
            return _none(COORDINATOR_NOT_AVAILABLE, f"The coordinator, broker {node.id}, has no listener {listener!r}.")
        return {"node_id": node.id, "host": address[0], "port": address[1], "error_code": 0, "error_message": None}


def _none(error: int, message: str) -> Mapping[str, Any]:
    return {"node_id": -1, "host": "", "port": -1, "error_code": error, "error_message": message}

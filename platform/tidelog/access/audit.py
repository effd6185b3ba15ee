"""The audit: one line of JSON for each denial and each change of access, by the logger `tidelog.audit`.

A denial that repeats is written once, and its count later: a client that is refused asks again and again. Lines name
the principal, its address, the operation and the resource; nothing that is secret is ever given to this module.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from tidelog.access.model import Acl, AclOperation, AclResource, acl_fields
from tidelog.log.base.clock import Clock

logger = logging.getLogger("tidelog.audit")

# Names come from clients, and may be of any length: what is kept and written of them.
MOST_CHARACTERS: Final = 256
# For how long the same denial is counted and not written again, how many of them are kept in mind, and how many lines
# about denials there are in a second at most: more would be a way to fill a disk.
AGAIN_AFTER_S: Final = 60.0
MOST_KEPT: Final = 10_000
MOST_A_SECOND: Final = 100


@dataclass(frozen=True, slots=True)
class Requester:
    """The origin of a request: the connection's principal, address and listener, and the client id."""

    principal: str
    host: str
    listener: str = ""
    client_id: str | None = None


class _Denial:
    """A denial that was written: when, and how often it was repeated since."""

    __slots__ = ("again", "at_s", "fields")

    def __init__(self, at_s: float, fields: Mapping[str, Any]) -> None:
        self.at_s = at_s
        self.fields = fields
        self.again = 0


class Audit:
    """Writes the lines. `also`: gets each line, too. For one thread."""

    def __init__(self, clock: Clock, also: Callable[[bytes], None] | None = None) -> None:
        self._clock = clock
        self._also = also
        # By the time of their lines, the oldest first.
        self._denials: OrderedDict[Hashable, _Denial] = OrderedDict()
        self._second = -1
        self._lines = 0
        self._left_out = 0

    def denied(
        self, who: Requester, api: str, operation: AclOperation, resource: AclResource, name: str, by: Acl | None
    ) -> None:
        """A request was denied. `by`: the ACL that denies it; None where none allows it."""
        who, name = _short(who), name[:MOST_CHARACTERS]
        key = (who, api, operation, resource, name)
        self._refused(
            key,
            {
                "event": "denied",
                **_who(who),
                "api": api,
                "operation": operation.name,
                "resource": resource.name,
                "name": name,
                "by": None if by is None else acl_fields(by),
            },
        )

    def not_authenticated(self, who: Requester, mechanism: str, user: str, why: str) -> None:
        """A client could not show that it is the `user` that it says; "" where it did not come so far."""
        who, user = _short(who), user[:MOST_CHARACTERS]
        fields = {"event": "not authenticated", **_who(who), "mechanism": mechanism, "user": user, "why": why}
        self._refused((who, mechanism, user), fields)

    def changed(self, who: Requester, api: str, change: Mapping[str, Any]) -> None:
        """Access was changed: what it is now, without secrets. Every change is written."""
        self._write({"event": "changed", **_who(who), "api": api, **change})

    def close(self) -> None:
        """Write what was only counted so far."""
        while self._denials:
            self._forget_oldest()

    def _refused(self, key: Hashable, fields: Mapping[str, Any]) -> None:
        now_s = self._clock.elapsed_s()
        while self._denials and now_s - next(iter(self._denials.values())).at_s >= AGAIN_AFTER_S:
            self._forget_oldest()
        known = self._denials.get(key)
        if known is not None:
            known.again += 1
            return
        if not self._has_room(now_s):
            self._left_out += 1
            return
        if len(self._denials) >= MOST_KEPT:
            self._forget_oldest()
        self._denials[key] = _Denial(now_s, fields)
        left_out, self._left_out = self._left_out, 0
        self._write({**fields, "left_out": left_out} if left_out else fields)

    def _has_room(self, now_s: float) -> bool:
        if int(now_s) != self._second:
            self._second, self._lines = int(now_s), 0
        self._lines += 1
        return self._lines <= MOST_A_SECOND

    def _forget_oldest(self) -> None:
        _, denial = self._denials.popitem(last=False)
        if denial.again:
            self._write({**denial.fields, "again": denial.again})

    def _write(self, fields: Mapping[str, Any]) -> None:
        line = orjson.dumps({"time_ms": self._clock.now_ms(), **fields})
        logger.info("%s", line.decode())
        if self._also is not None:
            self._also(line)


def _short(who: Requester) -> Requester:
    if who.client_id is None or len(who.client_id) <= MOST_CHARACTERS:
        return who
    return replace(who, client_id=who.client_id[:MOST_CHARACTERS])


def _who(who: Requester) -> Mapping[str, Any]:
    return {"principal": who.principal, "host": who.host, "listener": who.listener, "client_id": who.client_id}

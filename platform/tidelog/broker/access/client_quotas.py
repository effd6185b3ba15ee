"""DescribeClientQuotas and AlterClientQuotas (KIP-546), as kafka-configs.sh asks about users, clients and ips."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidelog.access import quotas
from tidelog.access.quotas import DEFAULT, Entity, Limits, Quota
from tidelog.broker.access.asking import result
from tidelog.broker.base.access import requester
from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.codec import Answer
from tidelog.broker.wire.errors import InvalidRequestError, UnsupportedVersionError
from tidelog.log.base.errors import InvalidConfigError, TidelogError

# What an entity is of, by Kafka's names, and the fields that have it.
_FIELDS: Final = {"user": "user", "client-id": "client_id", "ip": "ip"}
# How a component of a filter matches.
_EXACT, _DEFAULT, _ANY = range(3)


class QuotaHandlers:
    """Quotas, as the log of access has them."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def handlers(self) -> Handlers:
        """By API."""
        return {ApiKey.DESCRIBE_CLIENT_QUOTAS: self.describe, ApiKey.ALTER_CLIENT_QUOTAS: self.alter}

    async def describe(self, call: Call) -> Reply:
        """DescribeClientQuotas."""
        try:
            wanted = QuotaFilter.of(call.body)
            state = await self._context.blocking(self._context.access_log.look)
        except TidelogError as e:
            return {**result(e), "entries": None}
        return {**result(None), "entries": matching(state.quotas, wanted)}

    async def alter(self, call: Call) -> Reply:
        """AlterClientQuotas: each entity succeeds or fails by itself; what succeeds is one entry."""
        context, entries = self._context, call.body.entries
        outcomes: list[TidelogError | None] = []
        changes: dict[Entity, dict[Quota, float | None]] = {}
        for entry in entries:
            try:
                entity, change = change_of(entry)
                changes.setdefault(entity, {}).update(change)
                outcomes.append(None)
            except TidelogError as e:
                outcomes.append(e)
        if changes and not call.body.validate_only:
            try:
                await context.blocking(context.access_log.alter_quotas, changes)
                for entity, change in changes.items():
                    fields = {"entity": entity_fields(entity), "limits": {q.value: v for q, v in change.items()}}
                    context.access.audit.changed(requester(call), call.key.name, fields)
                await context.access.look_now()
            except TidelogError as e:
                outcomes = [outcome or e for outcome in outcomes]
        return {
            "entries": [
                {
                    **result(outcome),
                    "entity": [
                        {"entity_type": one.entity_type, "entity_name": one.entity_name} for one in entry.entity
                    ],
                }
                for entry, outcome in zip(entries, outcomes, strict=True)
            ]
        }


@dataclass(frozen=True, slots=True)
class QuotaFilter:
    """Which entities are meant: {field: its name}, the fields that have any name, and whether there are no others."""

    exact: Mapping[str, str]
    any_name: frozenset[str]
    strict: bool

    @classmethod
    def of(cls, body: Any) -> "QuotaFilter":
        """The filter of a request. Raises `InvalidRequestError`, `UnsupportedVersionError`."""
        exact: dict[str, str] = {}
        any_name: set[str] = set()
        for one in body.components:
            field = _FIELDS.get(one.entity_type)
            if field is None:  # so Kafka's image of quotas answers, and InvalidRequestError where one is altered
                raise UnsupportedVersionError(_unknown(one.entity_type))
            if field in exact or field in any_name:
                raise InvalidRequestError(f"Entity type {one.entity_type} cannot appear more than once in the filter.")
            if one.match_type == _EXACT and one.match is not None:
                exact[field] = one.match
            elif one.match_type == _DEFAULT and one.match is None:
                exact[field] = DEFAULT
            elif one.match_type == _ANY and one.match is None:
                any_name.add(field)
            else:
                raise InvalidRequestError(f"The filter's {one.entity_type} has a match that does not go with its type.")
        if {*exact, *any_name} > {"ip"}:
            raise InvalidRequestError("Invalid entity filter component combination: an ip is by itself.")
        return cls(exact, frozenset(any_name), body.strict)

    def matches(self, entity: Entity) -> bool:
        """Whether an entity is meant."""
        names = {field: name for field in _FIELDS.values() if (name := getattr(entity, field)) is not None}
        wanted = {*self.exact, *self.any_name}
        return (
            wanted <= names.keys()
            and all(names[field] == name for field, name in self.exact.items())
            and not (self.strict and names.keys() - wanted)
        )


def matching(limits: Limits, wanted: QuotaFilter) -> Sequence[Answer]:
    """The entities that a filter means, with their limits."""
    return [
        {
            "entity": [
                {"entity_type": kind, "entity_name": None if name == DEFAULT else name}
                for kind, name in entity_fields(entity).items()
            ],
            "values": [{"key": quota.value, "value": limit} for quota, limit in sorted(own.items())],
        }
        for entity, own in sorted(limits.items(), key=lambda item: _order(item[0]))
        if wanted.matches(entity)
    ]


def change_of(entry: Any) -> tuple[Entity, Mapping[Quota, float | None]]:
    """An entity, and its limits to set, or to take away (None). Raises `InvalidRequestError`."""
    names: dict[str, str] = {}
    for one in entry.entity:
        field = _FIELDS.get(one.entity_type)
        if field is None:
            raise InvalidRequestError(_unknown(one.entity_type))
        if field in names:
            raise InvalidRequestError(f"Entity type {one.entity_type} cannot appear more than once in an entity.")
        if one.entity_name == "":
            raise InvalidRequestError(f"An entity's {one.entity_type} has a name, or none for the default.")
        names[field] = DEFAULT if one.entity_name is None else one.entity_name
    _require_address(names.get("ip"))
    change: dict[Quota, float | None] = {}
    for op in entry.ops:
        try:
            quota = Quota(op.key)
        except ValueError:
            known = ", ".join(sorted(Quota))
            raise InvalidRequestError(f"Invalid configuration key {op.key}. There are {known}.") from None
        if quota in change:
            raise InvalidRequestError(f"{quota} appears twice for one entity. Set it once.")
        change[quota] = None if op.remove else float(op.value)
    entity = Entity(**names)
    try:
        quotas.require_valid(entity, {quota: 1.0 if limit is None else limit for quota, limit in change.items()})
    except InvalidConfigError as e:
        raise InvalidRequestError(str(e)) from e
    return entity, change


def _require_address(ip: str | None) -> None:
    if ip is None or ip == DEFAULT:
        return
    try:
        ipaddress.ip_address(ip)
    except ValueError:
        raise InvalidRequestError(
            f"{ip} is not a valid IP address. Quotas by ip are of addresses, not names."
        ) from None


def entity_fields(entity: Entity) -> Mapping[str, str]:
    """An entity by Kafka's names."""
    return {kind: name for kind, field in _FIELDS.items() if (name := getattr(entity, field)) is not None}


def _order(entity: Entity) -> tuple[str, ...]:
    return tuple(getattr(entity, field) or "" for field in _FIELDS.values())


def _unknown(kind: str) -> str:
    return f"Quotas are of {', '.join(_FIELDS)}, not of {kind!r}."

"""DescribeClientQuotas and AlterClientQuotas (KIP-546), as kafka-configs.sh asks about users, clients and ips."""

from collections.abc import Mapping
from typing import Any, Final

from tidelog.access.quotas import DEFAULT, Entity, Quota
from tidelog.broker.access.authorization import result
from tidelog.broker.base.access import requester
from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import InvalidRequestError, UnsupportedVersionError
from tidelog.broker.wire.messages import Answer
from tidelog.log.base.errors import InvalidConfigError, TidelogError
from tidelog.operations.quotas import QuotaFilter, alter_quotas, describe_quotas, parts_of, require_quota

# What an entity is of, by Kafka's names, and the parts that have it.
_PARTS: Final = {"user": "user", "client-id": "client_id", "ip": "ip"}
_KINDS: Final = {part: kind for kind, part in _PARTS.items()}
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
            wanted = filter_of(call.body)
            limits = await self._context.blocking(describe_quotas, self._context.access_log, wanted)
        except TidelogError as e:
            return {**result(e), "entries": None}
        return {**result(None), "entries": [_described(entity, own) for entity, own in limits.items()]}

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
                await context.blocking(alter_quotas, context.access_log, changes)
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


def filter_of(body: Any) -> QuotaFilter:
    """The filter of a request. Raises `InvalidRequestError`, `UnsupportedVersionError`."""
    exact: dict[str, str] = {}
    any_name: set[str] = set()
    for component in body.components:
        part = _PARTS.get(component.entity_type)
        if part is None:  # so Kafka's image of quotas answers, and InvalidRequestError where one is altered
            raise UnsupportedVersionError(_unknown(component.entity_type))
        if part in exact or part in any_name:
            raise InvalidRequestError(
                f"Entity type {component.entity_type} cannot appear more than once in the filter."
            )
        if component.match_type == _EXACT and component.match is not None:
            exact[part] = component.match
        elif component.match_type == _DEFAULT and component.match is None:
            exact[part] = DEFAULT
        elif component.match_type == _ANY and component.match is None:
            any_name.add(part)
        else:
            raise InvalidRequestError(
                f"The filter's {component.entity_type} has a match that does not go with its type."
            )
    if {*exact, *any_name} > {"ip"}:
        raise InvalidRequestError("Invalid entity filter component combination: an ip is by itself.")
    return QuotaFilter(exact, frozenset(any_name), body.strict)


def _described(entity: Entity, limits: Mapping[Quota, float]) -> Answer:
    return {
        "entity": [
            {"entity_type": kind, "entity_name": None if name == DEFAULT else name}
            for kind, name in entity_fields(entity).items()
        ],
        "values": [{"key": quota.value, "value": limit} for quota, limit in sorted(limits.items())],
    }


def change_of(entry: Any) -> tuple[Entity, Mapping[Quota, float | None]]:
    """An entity, and its limits to set, or to take away (None). Raises `InvalidRequestError`."""
    names: dict[str, str] = {}
    for component in entry.entity:
        part = _PARTS.get(component.entity_type)
        if part is None:
            raise InvalidRequestError(_unknown(component.entity_type))
        if part in names:
            raise InvalidRequestError(f"Entity type {component.entity_type} cannot appear more than once in an entity.")
        if component.entity_name == "":
            raise InvalidRequestError(f"An entity's {component.entity_type} has a name, or none for the default.")
        names[part] = DEFAULT if component.entity_name is None else component.entity_name
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
        require_quota(entity, change)
    except InvalidConfigError as e:
        raise InvalidRequestError(str(e)) from e
    return entity, change


def entity_fields(entity: Entity) -> Mapping[str, str]:
    """An entity by Kafka's names."""
    return {_KINDS[part]: name for part, name in parts_of(entity).items()}


def _unknown(kind: str) -> str:
    return f"Quotas are of {', '.join(_PARTS)}, not of {kind!r}."

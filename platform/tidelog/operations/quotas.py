"""Quotas: which limits there are, which of them a filter means, and how they are changed."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from tidelog.access.access_log import AccessLog
from tidelog.access.quotas import DEFAULT, Entity, Quota, require_valid
from tidelog.log.base.errors import InvalidConfigError

_PARTS: Final = tuple(part.name for part in fields(Entity))


@dataclass(frozen=True, slots=True)
class QuotaFilter:
    """Which entities are meant, by their parts `user`, `client_id` and `ip`.

    `exact`: parts with a name, which may be `DEFAULT`; `any_name`: parts with whatever name. `strict`: an entity has no
    other parts.
    """

    exact: Mapping[str, str] = field(default_factory=dict)
    any_name: frozenset[str] = frozenset()
    strict: bool = False

    def matches(self, entity: Entity) -> bool:
        """Whether an entity is meant."""
        names = parts_of(entity)
        wanted = {*self.exact, *self.any_name}
        return (
            wanted <= names.keys()
            and all(names[part] == name for part, name in self.exact.items())
            and not (self.strict and names.keys() - wanted)
        )


ALL_QUOTAS: Final = QuotaFilter()


def parts_of(entity: Entity) -> dict[str, str]:
    """The parts that an entity has: {user, client_id or ip: its name}."""
    return {part: name for part in _PARTS if (name := getattr(entity, part)) is not None}


def describe_quotas(log: AccessLog, wanted: QuotaFilter = ALL_QUOTAS) -> dict[Entity, Mapping[Quota, float]]:
    """The limits of each entity that a filter means: of users and client ids first, then of addresses, sorted."""
    limits = log.look().quotas
    return {entity: limits[entity] for entity in sorted(filter(wanted.matches, limits), key=_order)}


def require_quota(entity: Entity, changes: Mapping[Quota, float | None]) -> None:
    """Refuse a change of a quota that would never hold. Raises `InvalidConfigError`."""
    if entity.ip is not None and entity.ip != DEFAULT:
        try:
            ipaddress.ip_address(entity.ip)
        except ValueError:
            raise InvalidConfigError(
                f"{entity.ip} is not a valid IP address. Quotas by ip are of addresses, not names."
            ) from None
    require_valid(entity, {quota: 1.0 if limit is None else limit for quota, limit in changes.items()})


def alter_quotas(
    log: AccessLog, changes: Mapping[Entity, Mapping[Quota, float | None]]
) -> dict[Entity, dict[Quota, float]]:
    """Change limits, None takes one away, all or none; all limits of each entity afterwards.

    Raises `InvalidConfigError`.
    """
    return log.alter_quotas(changes)


def _order(entity: Entity) -> tuple[str, ...]:
    return tuple(name or "" for name in (entity.ip, entity.user, entity.client_id))

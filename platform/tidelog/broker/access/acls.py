"""DescribeAcls, CreateAcls and DeleteAcls (KIP-140, KIP-290)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidelog.access.model import (
    Acl,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    acl_fields,
)
from tidelog.access.rules import require_valid
from tidelog.broker.access.authorization import result
from tidelog.broker.base.access import requester
from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import InvalidRequestError
from tidelog.broker.wire.messages import Answer
from tidelog.log.base.errors import InvalidConfigError, TidelogError
from tidelog.operations.access import create_acls, delete_acls, describe_acls


class AclHandlers:
    """ACLs, as the log of access has them: each broker answers with the newest."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def handlers(self) -> Handlers:
        """By API."""
        return {
            ApiKey.DESCRIBE_ACLS: self.describe,
            ApiKey.CREATE_ACLS: self.create,
            ApiKey.DELETE_ACLS: self.delete,
        }

    async def describe(self, call: Call) -> Reply:
        """DescribeAcls."""
        try:
            wanted = filter_of(call.body)
            acls = await self._context.blocking(describe_acls, self._context.access_log, [wanted])
        except TidelogError as e:
            return {**result(e), "resources": ()}
        return {**result(None), "resources": by_resource(acls)}

    async def create(self, call: Call) -> Reply:
        """CreateAcls: those that are valid, in one entry."""
        context, outcomes, valid = self._context, list[TidelogError | None](), list[Acl]()
        for asked in call.body.creations:
            try:
                acl = acl_of(asked)
                valid.append(acl)
                outcomes.append(None)
            except TidelogError as e:
                outcomes.append(e)
        try:
            added = await context.blocking(create_acls, context.access_log, valid) if valid else []
            await self._changed(call, "added", added)
        except TidelogError as e:
            outcomes = [outcome or e for outcome in outcomes]
        return {"results": [result(outcome) for outcome in outcomes]}

    async def delete(self, call: Call) -> Reply:
        """DeleteAcls: what any of the filters means, in one entry."""
        context = self._context
        filters: list[AclFilter | TidelogError] = []
        for asked in call.body.filters:
            try:
                filters.append(filter_of(asked))
            except TidelogError as e:
                filters.append(e)
        valid = [one for one in filters if isinstance(one, AclFilter)]
        try:
            deleted = iter(await context.blocking(delete_acls, context.access_log, valid))
            outcomes = [one if isinstance(one, TidelogError) else next(deleted) for one in filters]
            await self._changed(call, "deleted", {acl for acls in outcomes if isinstance(acls, list) for acl in acls})
        except TidelogError as e:
            outcomes = [one if isinstance(one, TidelogError) else e for one in filters]
        return {"filter_results": [_deleted(one) for one in outcomes]}

    async def _changed(self, call: Call, what: str, acls: Iterable[Acl]) -> None:
        """The changed ACLs are in the audit, and in force here before the client hears of it."""
        changed = [acl_fields(acl) for acl in sorted(acls)]
        if changed:
            self._context.access.audit.changed(requester(call), call.key.name, {what: changed})
            await self._context.access.look_now()


def acl_of(asked: Any) -> Acl:
    """The ACL that a CreateAcls request names. Raises `InvalidRequestError`."""
    try:
        acl = Acl(
            AclResource(asked.resource_type),
            AclPattern(asked.resource_pattern_type),
            asked.resource_name,
            asked.principal,
            asked.host,
            AclOperation(asked.operation),
            AclPermission(asked.permission_type),
        )
        require_valid(acl)
    except (ValueError, InvalidConfigError) as e:
        raise InvalidRequestError(str(e)) from e
    return acl


def filter_of(asked: Any) -> AclFilter:
    """The filter that a DescribeAcls or DeleteAcls request names. Raises `InvalidRequestError`."""
    try:
        return AclFilter(
            AclResource(asked.resource_type_filter),
            AclPattern(asked.pattern_type_filter),
            asked.resource_name_filter,
            asked.principal_filter,
            asked.host_filter,
            AclOperation(asked.operation),
            AclPermission(asked.permission_type),
        )
    except ValueError as e:
        raise InvalidRequestError(f"The filter has a code that Kafka does not know: {e}.") from e


def by_resource(acls: Iterable[Acl]) -> Sequence[Answer]:
    """ACLs, sorted, as DescribeAcls answers with them: together where they are of one pattern."""
    patterns: dict[tuple[AclResource, str, AclPattern], list[Answer]] = {}
    for acl in acls:
        own = patterns.setdefault((acl.resource, acl.name, acl.pattern), [])
        own.append(_entry(acl))
    return [
        {"resource_type": resource, "resource_name": name, "pattern_type": pattern, "acls": own}
        for (resource, name, pattern), own in patterns.items()
    ]


def _entry(acl: Acl) -> Mapping[str, Any]:
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }


def _deleted(outcome: list[Acl] | TidelogError) -> Answer:
    if isinstance(outcome, TidelogError):
        return {**result(outcome), "matching_acls": ()}
    matching = [
        {
            **result(None),
            "resource_type": acl.resource,
            "resource_name": acl.name,
            "pattern_type": acl.pattern,
            **_entry(acl),
        }
        for acl in outcome
    ]
    return {**result(None), "matching_acls": matching}

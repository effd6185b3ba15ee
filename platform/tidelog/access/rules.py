"""Which ACLs and users there may be. Pure; refusals in words for the administrator."""

from tidelog.access.broker_user import BROKER_USER
from tidelog.access.model import (
    ANY_NAME,
    CLUSTER_NAME,
    OPERATIONS_OF,
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    is_network,
    network_of,
)
from tidelog.access.quotas import DEFAULT
from tidelog.access.state import UnacceptableCredentialError
from tidelog.log.base.errors import InvalidConfigError


def require_valid(acl: Acl) -> None:
    """Refuse an ACL that Kafka's controller refuses (`AclControlManager.validateNewAcl`). Raises `InvalidConfigError`.

    One that makes no sense for its resource, such as WRITE on a group, is kept, and matches no request.
    """
    problem = _problem(acl)
    if problem:
        raise InvalidConfigError(problem)


def require_sensible(acl: Acl) -> None:
    """Refuse an ACL that matches no request, as kafka-acls.sh does at its user's. Raises `InvalidConfigError`."""
    require_valid(acl)
    problem = ""
    if acl.pattern is AclPattern.PREFIXED and acl.name == ANY_NAME:
        problem = "A prefixed ACL of '*' means names that begin with an asterisk: make it literal to mean all."
    elif acl.operation is not AclOperation.ALL and acl.operation not in OPERATIONS_OF[acl.resource]:
        there = ", ".join(sorted(operation.name.lower() for operation in OPERATIONS_OF[acl.resource]))
        what = acl.resource.name.lower().replace("_", " ")
        problem = f"There is no {acl.operation.name.lower()} of a {what}; there are {there}, and all."
    if problem:
        raise InvalidConfigError(problem)


def require_user(user: str) -> None:
    """Refuse a name that no user may have. Raises `UnacceptableCredentialError`."""
    if not user.strip() or not user.isprintable():
        raise UnacceptableCredentialError(
            f"{user!r} can't be a user's name: it has at least one character, and none that can't be seen."
        )
    if user in (BROKER_USER, DEFAULT, ANY_NAME):
        raise UnacceptableCredentialError(
            f"{user!r} can't be a user's name: "
            + ("brokers ask each other as this user." if user == BROKER_USER else "it stands for others.")
        )


def _problem(acl: Acl) -> str:
    if acl.resource is AclResource.ANY or acl.operation is AclOperation.ANY or acl.permission is AclPermission.ANY:
        return "An ACL names one type of resource, one operation and one permission; ANY is for filters."
    if acl.pattern not in (AclPattern.LITERAL, AclPattern.PREFIXED):
        return "An ACL's pattern is literal or prefixed; any and match are for filters."
    if not acl.name:
        return "An ACL names a resource: give a name, the beginning of one (prefixed), or * for all."
    if acl.resource is AclResource.CLUSTER and acl.name != CLUSTER_NAME:
        return f"The cluster's name is {CLUSTER_NAME}, not {acl.name!r}."
    kind, colon, name = acl.principal.partition(":")
    if not (kind and colon and name):
        return f"{acl.principal!r} is no principal: write User:NAME, or User:* for everyone."
    if not acl.host:
        return "An ACL names a host: an address, a network, or * for all."
    if is_network(acl.host):
        try:
            network_of(acl.host)
        except ValueError as e:
            return f"An ACL's host is wrong: {e}."
    return ""

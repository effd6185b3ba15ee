"""Access: ACLs, and the users that have a password; over the log of a lake's access."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import (
    DEFAULT_ITERATIONS,
    SALT_BYTES,
    ScramCredential,
    ScramMechanism,
    credential,
)
from tidelog.access.model import Acl, AclFilter
from tidelog.access.rules import require_sensible
from tidelog.access.state import DuplicateCredentialError


@dataclass(frozen=True, slots=True)
class UserDescription:
    """A user with a password. `iterations`: by mechanism, sorted. `tenant`: the one that the user belongs to."""

    name: str
    iterations: Mapping[ScramMechanism, int]
    tenant: str | None


@dataclass(frozen=True, slots=True)
class RemovedPassword:
    """A user's password that went: of which mechanisms. `acls`: of the user, which stay, sorted."""

    mechanisms: Sequence[ScramMechanism]
    acls: Sequence[Acl]


# --- ACLs --------------------------------------------------------------------------------------------------


def describe_acls(log: AccessLog, filters: Sequence[AclFilter]) -> list[Acl]:
    """The ACLs that any of the filters means, sorted."""
    return sorted(acl for acl in log.look().acls if any(one.matches(acl) for one in filters))


def create_acls(log: AccessLog, acls: Sequence[Acl], *, sensible: bool = False) -> list[Acl]:
    """Create ACLs, all or none; those that were not there, sorted.

    `sensible`: refuse those, too, that match no request, as kafka-acls.sh does. Raises `InvalidConfigError`.
    """
    if sensible:
        for acl in acls:
            require_sensible(acl)
    return log.add_acls(acls)


def delete_acls(log: AccessLog, filters: Sequence[AclFilter]) -> list[list[Acl]]:
    """Delete the ACLs that the filters mean; for each filter, which, sorted."""
    return log.delete_acls(filters)


# --- users -------------------------------------------------------------------------------------------------


def describe_users(log: AccessLog) -> dict[str, UserDescription]:
    """The users with a password, by name, sorted."""
    state = log.look()
    tenants = {user: tenant.name for tenant in state.tenants.values() for user in tenant.users}
    iterations: dict[str, dict[ScramMechanism, int]] = {}
    for (user, mechanism), one in sorted(state.scram.items(), key=lambda item: item[0]):
        iterations.setdefault(user, {})[mechanism] = one.iterations
    return {user: UserDescription(user, own, tenants.get(user)) for user, own in iterations.items()}


def set_password(
    log: AccessLog, user: str, password: str, mechanisms: Iterable[ScramMechanism], iterations: int | None = None
) -> None:
    """Give a user a password, in place of those of the same mechanisms.

    Raises `InvalidConfigError` for a password or iterations, `UnacceptableCredentialError` for the name.
    """
    number = DEFAULT_ITERATIONS if iterations is None else iterations
    log.upsert_scram(user, *(credential(one, password, log.random(SALT_BYTES), number) for one in mechanisms))


def alter_user(
    log: AccessLog, user: str, deletions: Sequence[ScramMechanism], credentials: Sequence[ScramCredential]
) -> None:
    """Take credentials of a user away and give others, all or none.

    Raises `DuplicateCredentialError` for a mechanism that is named twice, and as `AccessLog.alter_scram`.
    """
    named = Counter([*deletions, *(one.mechanism for one in credentials)])
    if named and max(named.values()) > 1:
        raise DuplicateCredentialError(f"The request changes a credential of user '{user}' twice. Name each once.")
    log.alter_scram(user, deletions, credentials)


def remove_password(log: AccessLog, user: str, mechanism: ScramMechanism | None = None) -> RemovedPassword:
    """Take a user's password away: of one mechanism, or of all. Raises `UnknownCredentialError`."""
    if mechanism is None:
        gone = log.delete_user(user)
    else:
        log.delete_scram(user, mechanism)
        gone = [mechanism]
    return RemovedPassword(gone, describe_acls(log, [AclFilter(principal=f"User:{user}")]))

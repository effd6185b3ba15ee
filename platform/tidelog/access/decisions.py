"""What is decided about ACLs, credentials and quotas. All pure: each rule takes the state that its entry would follow.

A decision that changes nothing gives no rows, and no entry is written.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from tidelog.access import quotas
from tidelog.access.credentials import ScramCredential, ScramMechanism, require_iterations
from tidelog.access.model import Acl, AclFilter, seen_address, seen_host
from tidelog.access.quotas import Entity, Quota
from tidelog.access.rows import acl_row, client_metrics_row, quota_row, removed, scram_row, secret_row
from tidelog.access.rules import require_user, require_valid
from tidelog.access.state import AccessState, UnknownCredentialError
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.rows.schema import Row


def decide_add_acls(state: AccessState, acls: Iterable[Acl]) -> RowOutcome[list[Acl]]:
    """Add ACLs; the response: those that were not there, sorted. Raises `InvalidConfigError` as `require_valid`.

    Hosts are kept as brokers see addresses: a denial in another spelling would never hold.
    """
    wanted = {replace(acl, host=seen_host(acl.host)) for acl in acls}
    for acl in wanted:
        require_valid(acl)
    new = sorted(wanted - state.acls)
    return RowOutcome([acl_row(acl) for acl in new], new)


def decide_delete_acls(state: AccessState, filters: Sequence[AclFilter]) -> RowOutcome[list[list[Acl]]]:
    """Delete the ACLs that the filters mean; the response: for each filter, those that it matched, sorted."""
    matched = [sorted(filter(one.matches, state.acls)) for one in filters]
    gone = sorted({acl for acls in matched for acl in acls})
    return RowOutcome([removed(acl_row(acl)) for acl in gone], matched)


def decide_secret(state: AccessState, drawn: bytes) -> RowOutcome[bytes]:
    """The server's secret, which is `drawn` where there is none yet."""
    if state.secret:
        return RowOutcome((), state.secret)
    return RowOutcome([secret_row(drawn)], drawn)


def decide_upsert_scram(
    state: AccessState, user: str, credentials: Sequence[ScramCredential], drawn: bytes
) -> RowOutcome[None]:
    """Give a user credentials, in place of those of the same mechanisms; the server's secret comes with the first.

    Raises `UnacceptableCredentialError` for the name, `InvalidConfigError` for the iterations.
    """
    require_user(user)
    rows: list[Row] = list(decide_secret(state, drawn).rows)
    for credential in credentials:
        require_iterations(credential.iterations)
        if state.scram.get((user, credential.mechanism)) != credential:
            rows.append(scram_row(user, credential))
    return RowOutcome(rows, None)


def decide_delete_scram(state: AccessState, user: str, mechanisms: Sequence[ScramMechanism]) -> RowOutcome[None]:
    """Take a user's credentials away. Raises `UnknownCredentialError` unless all are there."""
    for mechanism in mechanisms:
        if (user, mechanism) not in state.scram:
            raise UnknownCredentialError(
                f"User '{user}' has no credential of {mechanism.value}. 'tidelog user list' names those there are."
            )
    return RowOutcome([removed(scram_row(user, state.scram[user, one])) for one in dict.fromkeys(mechanisms)], None)


def decide_alter_scram(
    state: AccessState,
    user: str,
    deletions: Sequence[ScramMechanism],
    credentials: Sequence[ScramCredential],
    drawn: bytes,
) -> RowOutcome[None]:
    """Take credentials of a user away and give others, all or nothing. Raises as the two by themselves."""
    deleted = decide_delete_scram(state, user, deletions)
    given = decide_upsert_scram(state, user, credentials, drawn) if credentials else RowOutcome((), None)
    return RowOutcome([*deleted.rows, *given.rows], None)


def decide_delete_user(state: AccessState, user: str) -> RowOutcome[list[ScramMechanism]]:
    """Take all credentials of a user away; the response: of which mechanisms. Raises `UnknownCredentialError`."""
    mechanisms = sorted(mechanism for name, mechanism in state.scram if name == user)
    if not mechanisms:
        raise UnknownCredentialError(
            f"There is no user '{user}' with a password. 'tidelog user list' names those there are."
        )
    return RowOutcome(decide_delete_scram(state, user, mechanisms).rows, mechanisms)


def decide_alter_quotas(
    state: AccessState, changes: Mapping[Entity, Mapping[Quota, float | None]]
) -> RowOutcome[dict[Entity, dict[Quota, float]]]:
    """Change limits of entities; None takes one away. The response: all limits of each entity afterwards.

    Addresses are kept as brokers see them.

    Raises `InvalidConfigError` as `quotas.require_valid`.
    """
    seen = {named: named if named.ip is None else replace(named, ip=seen_address(named.ip)) for named in changes}
    merged: dict[Entity, dict[Quota, float | None]] = {}
    for named, changed in changes.items():
        quotas.require_valid(named, {quota: limit for quota, limit in changed.items() if limit is not None})
        merged.setdefault(seen[named], {}).update(changed)
    after = {entity: changed_limits(state, entity, changed) for entity, changed in merged.items()}
    rows = [row for entity, limits in after.items() for row in limit_rows(state, entity, limits)]
    return RowOutcome(rows, {named: after[entity] for named, entity in seen.items()})


def changed_limits(state: AccessState, entity: Entity, changes: Mapping[Quota, float | None]) -> dict[Quota, float]:
    """The limits of an entity after changes."""
    merged = {**state.quotas.get(entity, {}), **changes}
    return {quota: limit for quota, limit in merged.items() if limit is not None}


def limit_rows(state: AccessState, entity: Entity, limits: Mapping[Quota, float]) -> list[Row]:
    """The row that gives an entity these limits; none where it has them."""
    return [quota_row(entity, limits)] if limits != state.quotas.get(entity, {}) else []


def decide_client_metrics(
    state: AccessState, name: str, change: Callable[[Mapping[str, Mapping[str, str]]], Mapping[str, str]]
) -> RowOutcome[Mapping[str, str]]:
    """Change a subscription of clients' metrics; the response: all of its keys afterwards, none once it is gone.

    `change`: what makes its keys of all subscriptions before; raises what it raises.
    """
    after = dict(change(state.client_metrics))
    changes = after != state.client_metrics.get(name, {})
    return RowOutcome([client_metrics_row(name, after)] if changes else (), after)

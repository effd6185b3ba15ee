"""The log of a lake's access, `__access`: the ACLs, users, quotas and tenants of its brokers."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from tidelog.access import decisions, tenant_rules
from tidelog.access.credentials import ScramCredential, ScramMechanism
from tidelog.access.model import Acl, AclFilter
from tidelog.access.quotas import Entity, Quota
from tidelog.access.rows import KIND, AccessFold
from tidelog.access.state import AccessState, Tenant
from tidelog.log.base.errors import LakeNotFoundError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.state.topic_state import ROWS
from tidelog.log.storage.port import Storage

R = TypeVar("R")

SECRET_BYTES: Final = 32


class AccessLog:
    """The access of a lake: its own table, or below the root that its key `access.root` names when this is first used.

    All methods may be called from many threads. The table is made by the first write; before that nothing is known of
    anyone. Writes raise `OutcomeUnknownError` when the store stops answering: each may be repeated, and sees what is
    there.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._lock = threading.Lock()
        self._opened: Lake | None = None

    def close(self) -> None:
        """Wait for what goes on in the background of another root; the lake itself is its owner's to close."""
        with self._lock:
            if self._opened is not None and self._opened is not self._lake:
                self._opened.close()
            self._opened = None

    @property
    def storage(self) -> Storage:
        """Where the table is."""
        return self._home().storage

    def look(self) -> AccessState:
        """All that is known, at the head of the log."""
        return self.seen()[1]

    def seen(self) -> tuple[int, AccessState]:
        """The version of the log's head, -1 before its first entry, and all that is known there."""
        log = self._log()
        try:
            return log.look(lambda fold: (log.version, fold.state))
        except LakeNotFoundError as e:
            if self._home() is self._lake:
                raise
            raise LakeNotFoundError(
                f"access.root is {self.storage.uri}, and nothing is kept there yet: what clients may do is not known."
                " Add a first user or ACL ('tidelog user add', 'tidelog acl add'), or correct access.root ('tidelog"
                " lake alter')."
            ) from e

    def tables(self) -> list[RowLog[AccessFold]]:
        """The table itself, where it belongs to the lake; none before the first write, nor for another root."""
        if self._lake.config().access_root:
            return []
        log = self._log()
        return [log] if log.fact(ROWS) is not None else []

    # --- deciding ------------------------------------------------------------------------------------------

    def add_acls(self, acls: Iterable[Acl]) -> list[Acl]:
        """Add ACLs; those that were not there. Raises as `decisions.decide_add_acls`, and then adds none."""
        wanted = list(acls)
        return self._decide(partial(decisions.decide_add_acls, acls=wanted))

    def delete_acls(self, filters: Sequence[AclFilter]) -> list[list[Acl]]:
        """Delete the ACLs that the filters mean; for each filter, which."""
        return self._decide(partial(decisions.decide_delete_acls, filters=filters))

    def upsert_scram(self, user: str, *credentials: ScramCredential) -> None:
        """Give a user credentials. Raises as `decisions.decide_upsert_scram`."""
        rule = partial(decisions.decide_upsert_scram, user=user, credentials=credentials, drawn=self._secret())
        self._decide(rule)

    def delete_scram(self, user: str, *mechanisms: ScramMechanism) -> None:
        """Take credentials of a user away. Raises `UnknownCredentialError`."""
        self._decide(partial(decisions.decide_delete_scram, user=user, mechanisms=mechanisms))

    def alter_scram(
        self, user: str, deletions: Sequence[ScramMechanism], credentials: Sequence[ScramCredential]
    ) -> None:
        """Take credentials of a user away and give others, in one entry. Raises as both."""
        rule = partial(
            decisions.decide_alter_scram,
            user=user,
            deletions=deletions,
            credentials=credentials,
            drawn=self._secret(),
        )
        self._decide(rule)

    def delete_user(self, user: str) -> list[ScramMechanism]:
        """Take all credentials of a user away; of which mechanisms. Raises `UnknownCredentialError`."""
        return self._decide(partial(decisions.decide_delete_user, user=user))

    def ensure_secret(self) -> bytes:
        """The server's secret; it is made where there is none."""
        return self._decide(partial(decisions.decide_secret, drawn=self._secret()))

    def alter_quotas(self, changes: Mapping[Entity, Mapping[Quota, float | None]]) -> dict[Entity, dict[Quota, float]]:
        """Change limits, None takes one away; all limits of each entity afterwards. Raises `InvalidConfigError`."""
        return self._decide(partial(decisions.decide_alter_quotas, changes=changes))

    def alter_client_metrics(
        self, name: str, change: Callable[[Mapping[str, Mapping[str, str]]], Mapping[str, str]]
    ) -> Mapping[str, str]:
        """Change a subscription of clients' metrics, as `decisions.decide_client_metrics`."""
        return self._decide(partial(decisions.decide_client_metrics, name=name, change=change))

    def create_tenant(self, tenant: Tenant) -> Tenant:
        """Create a tenant with its ACLs and quotas. Raises as `tenant_rules.decide_create_tenant`."""
        return self._decide(partial(tenant_rules.decide_create_tenant, tenant=tenant))

    def alter_tenant(
        self,
        name: str,
        *,
        add_users: Iterable[str] = (),
        remove_users: Iterable[str] = (),
        limits: Mapping[Quota, float | None] | None = None,
    ) -> Tenant:
        """Change a tenant's users and limits. Raises as `tenant_rules.decide_alter_tenant`."""
        rule = partial(
            tenant_rules.decide_alter_tenant,
            name=name,
            add_users=tuple(add_users),
            remove_users=tuple(remove_users),
            limits=limits,
        )
        return self._decide(rule)

    def remove_tenant(self, name: str) -> Tenant:
        """Remove a tenant with its ACLs and quotas. Raises `UnknownTenantError`."""
        return self._decide(partial(tenant_rules.decide_remove_tenant, name=name))

    def _decide(self, rule: Callable[[AccessState], RowOutcome[R]]) -> R:
        return self._log().commit(lambda fold: rule(fold.state))

    def random(self, size: int) -> bytes:
        """That many bytes that cannot be guessed, as for a salt."""
        return self._lake.ids.secret(size)

    def _secret(self) -> bytes:
        return self.random(SECRET_BYTES)

    # --- where it is ---------------------------------------------------------------------------------------

    def _log(self) -> RowLog[AccessFold]:
        return self._home().row_log(layout.ACCESS_TABLE, KIND)

    def _home(self) -> Lake:
        with self._lock:
            if self._opened is None:
                lake = self._lake
                root = lake.config().access_root
                self._opened = (
                    Lake(root, create=None, options=lake.options, clock=lake.clock, ids=lake.ids) if root else lake
                )
            return self._opened

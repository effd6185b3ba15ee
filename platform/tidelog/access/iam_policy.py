"""ACLs as policies of AWS IAM: the nearest that a store can come to them, and what it can't express. Pure.

For principals whose programs read and write the store themselves. A policy allows no operation of a topic that
no ACL allows, but where one object or one table serves for several: each such place, and each ACL that has no
counterpart, is a gap with its reason. What each operation needs of the store is said in docs/object-stores.md.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidelog.access.model import (
    ANY_HOST,
    ANY_NAME,
    EVERYONE,
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    covers_host,
)
from tidelog.access.quotas import DEFAULT
from tidelog.access.state import AccessState
from tidelog.log.base.errors import InvalidUriError
from tidelog.log.delta import layout
from tidelog.log.rules import names
from tidelog.log.storage.addresses import parse_address

VERSION: Final = "2012-10-17"
# Of a managed policy, without blanks (AWS: "IAM and STS quotas").
MOST_CHARACTERS: Final = 6_144

_READ: Final = frozenset({"s3:GetObject"})
_WRITE: Final = frozenset({"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"})
_SHARED: Final = frozenset({"s3:GetObject", "s3:PutObject"})
_DELETE: Final = frozenset({"s3:DeleteObject"})
_ALL: Final = _WRITE | _DELETE
_OFFSETS: Final = f"{layout.OFFSETS_TABLE}*"
_LEASES: Final = f"{layout.OFFSETS_TABLE}/_tidelog/leases/*"
_TRANSACTIONS: Final = f"{layout.TRANSACTIONS_TABLE}/*"
_CLUSTER: Final = f"{layout.CLUSTER_TABLE}/*"
_ACCESS: Final = f"{layout.ACCESS_TABLE}/*"
# What is beside topics in a lake's folder, and no topic's ACL is about.
_OWN: Final = (
    _ACCESS,
    _CLUSTER,
    _TRANSACTIONS,
    _OFFSETS,
    f"{layout.CUTS_TABLE}/*",
    f"{layout.BRANCHES_FOLDER}/*",
    f"{layout.MIRROR_FOLDER}/*",
)


@dataclass(frozen=True, slots=True, order=True)
class PolicyGap:
    """What a principal's policy does not express, or allows besides."""

    principal: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class IamPolicies:
    """{principal: policy document}, and the gaps."""

    policies: Mapping[str, Mapping[str, Any]]
    gaps: Sequence[PolicyGap]


def iam_policies(state: AccessState, address: str, principals: Iterable[str] | None = None) -> IamPolicies:
    """The policies of these principals, or of all that ACLs name, for the lake at an address in S3.

    Raises `InvalidUriError` for an address that is none, or not in S3.
    """
    location = parse_address(address)
    if location.scheme not in ("s3", "s3a"):
        raise InvalidUriError(
            f"A policy of IAM is about objects in S3, and {address!r} is elsewhere. Give the lake's address there:"
            " --root s3://bucket/lake."
        )
    root = location.place.partition("://")[2].strip("/")
    wanted = sorted({acl.principal for acl in state.acls}) if principals is None else list(principals)
    makers: dict[str, _Policy] = {}
    for principal in wanted:
        acls = sorted(acl for acl in state.acls if acl.principal in (principal, EVERYONE))
        maker = makers[principal] = _Policy(principal, root, acls)
        for acl in acls:
            maker.take(acl)
        if _has_quotas(state, principal):
            maker.gap("quotas", "the store has none")
    policies = {principal: maker.document() for principal, maker in makers.items()}
    return IamPolicies(policies, sorted({gap for maker in makers.values() for gap in maker.gaps}))


def _has_quotas(state: AccessState, principal: str) -> bool:
    users = {principal.partition(":")[2], DEFAULT}
    return any(entity.user in users for entity in state.quotas)


class _Policy:
    """One principal's policy in the making: what is allowed and denied below the lake's root, by address."""

    def __init__(self, principal: str, root: str, acls: Sequence[Acl]) -> None:
        self._principal = principal
        self._allowed = [a for a in acls if a.resource is AclResource.TOPIC and a.permission is AclPermission.ALLOW]
        self._bucket = root.partition("/")[0]
        self._root = root
        self._rules: dict[tuple[str, str, str], set[str]] = defaultdict(set)  # (effect, host, object): actions
        self._meets_tables = False
        self.gaps: list[PolicyGap] = []

    def gap(self, what: str, why: str) -> None:
        """Name what the policy does not express."""
        self.gaps.append(PolicyGap(self._principal, what, why))

    def take(self, acl: Acl) -> None:
        """Add what an ACL says."""
        takes = {
            AclResource.TOPIC: self._topic,
            AclResource.GROUP: self._group,
            AclResource.TRANSACTIONAL_ID: self._transactional_id,
            AclResource.CLUSTER: self._cluster,
        }
        take = takes.get(acl.resource)
        if take is None:
            self._left_out(acl, "it is about brokers only")
            return
        if acl.host != ANY_HOST:
            self.gap(_shown(acl), "the address counts as the store sees it, behind proxies and gateways another one")
        take(acl)

    def document(self) -> Mapping[str, Any]:
        """The policy. It allows nothing where no ACL allows what a store knows of."""
        self._keep_tables()
        by_actions: dict[tuple[str, str, tuple[str, ...]], list[str]] = defaultdict(list)
        for (effect, host, name), actions in sorted(self._rules.items()):
            if not actions:
                continue
            by_actions[effect, host, tuple(sorted(actions))].append(self._arn(name))
        statements: list[Mapping[str, Any]] = []
        if any(effect == "Allow" for effect, _, _ in by_actions):
            bucket, lake_file = f"arn:aws:s3:::{self._bucket}", self._arn(layout.LAKE_FILE)
            statements = [
                {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": [bucket]},
                {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": [lake_file]},
            ]
        for (effect, host, verbs), resources in by_actions.items():
            statement: dict[str, Any] = {"Effect": effect, "Action": list(verbs), "Resource": resources}
            if host != ANY_HOST:
                statement["Condition"] = {"IpAddress": {"aws:SourceIp": host}}
            statements.append(statement)
        made = {"Version": VERSION, "Statement": statements}
        if len(json.dumps(made, separators=(",", ":"))) > MOST_CHARACTERS:
            self.gap("the policy's length", f"a managed policy has at most {MOST_CHARACTERS} characters: divide it")
        return made

    # --- by resource ---------------------------------------------------------------------------------------

    def _topic(self, acl: Acl) -> None:
        if not _may_name_topics(acl):
            self._left_out(acl, "no topic has such a name, but objects of the store may match it")
            return
        objects = f"{_pattern(acl)}/*"
        log = [f"{_pattern(acl)}/{layout.LOG_FOLDER}/*", f"{_pattern(acl)}/_tidelog/*"]
        operation = acl.operation
        if acl.permission is AclPermission.DENY:
            if operation in (AclOperation.READ, AclOperation.WRITE, AclOperation.ALL):
                denied = {AclOperation.READ: _READ, AclOperation.WRITE: _WRITE - _READ}.get(operation, _ALL)
                self._add("Deny", acl, denied, objects)
                if operation is AclOperation.READ:
                    self.gap(_shown(acl), "writers and describers read the log, so that they are denied, too")
                elif operation is AclOperation.WRITE and self._reads_as_writer(acl):
                    self._add("Deny", acl, _READ, objects)
                    self.gap(_shown(acl), "a writer reads the topic, so that reading is denied, too")
            else:
                self._left_out(acl, "the store can't tell it from other reads, or other writes, of the topic's log")
        elif operation in (AclOperation.WRITE, AclOperation.ALL):
            self._add("Allow", acl, _WRITE, objects)
            if operation is AclOperation.WRITE:
                self.gap(_shown(acl), "a writer reads the topic and writes its log, so it can create, alter, delete it")
        elif operation is AclOperation.READ:
            self._add("Allow", acl, _READ, objects)
        elif operation in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS):
            self._add("Allow", acl, _READ, *log)
        else:
            self._left_out(acl, "it is an entry of the topic's log, which only a writer of the topic may write")
        if acl.permission is AclPermission.ALLOW and _may_name_tables(acl):
            self._meets_tables = True

    def _reads_as_writer(self, denial: Acl) -> bool:
        """Whether something that a denial of Write is about could be read because of an allowed Write only."""
        reads = (AclOperation.READ, AclOperation.ALL)
        return any(a.operation is AclOperation.WRITE and _overlap(a, denial) for a in self._allowed) and not any(
            a.operation in reads and covers_host(a.host, denial.host) and _covers(a, denial) for a in self._allowed
        )

    def _group(self, acl: Acl) -> None:
        if self._of_table(acl, "groups", AclOperation.READ, _OFFSETS, "take part in", "members of groups"):
            self._add("Allow", acl, _DELETE, _LEASES)

    def _transactional_id(self, acl: Acl) -> None:
        writers = "those that use it"
        self._of_table(acl, "transactional ids", AclOperation.WRITE, _TRANSACTIONS, "use", writers)

    def _of_table(self, acl: Acl, what: str, operation: AclOperation, table: str, does: str, writers: str) -> bool:
        """An ACL of a kind whose names share a table, which `operation` writes; whether it allows that."""
        shares = f"all {what} of the lake share a table"
        if acl.permission is AclPermission.DENY:
            self._deny_all_or_none(acl, (operation,), shares, table)
        elif acl.operation in (operation, AclOperation.ALL):
            self._add("Allow", acl, _SHARED, table)
            self._says_more(acl, f"{shares}, so that it can {does} each")
            return True
        elif acl.operation is AclOperation.DESCRIBE:
            self._add("Allow", acl, _READ, table)
            self._says_more(acl, f"{shares}, so that it sees each")
        else:
            self._left_out(acl, f"{shares}, which only {writers} may write")
        return False

    def _cluster(self, acl: Acl) -> None:
        if acl.operation in (AclOperation.DESCRIBE, AclOperation.ALL):
            denies = acl.permission is AclPermission.DENY
            self._add("Deny" if denies else "Allow", acl, _ALL if denies else _READ, _CLUSTER)
        # An idempotent writer needs no more of the store than any writer.
        if acl.permission is AclPermission.ALLOW and acl.operation not in (
            AclOperation.DESCRIBE,
            AclOperation.IDEMPOTENT_WRITE,
        ):
            self._left_out(acl, "brokers, and roles that maintain the lake, do that (docs/object-stores.md)")

    # --- parts ---------------------------------------------------------------------------------------------

    def _deny_all_or_none(self, acl: Acl, covers: Sequence[AclOperation], shares: str, objects: str) -> None:
        """Deny a table that all names share: by an ACL about all of them only."""
        if acl.operation in (*covers, AclOperation.ALL) and _names_all(acl):
            self._add("Deny", acl, _ALL, objects)
        else:
            self._left_out(acl, f"{shares}: one of them, or one operation, can't be denied alone")

    def _keep_tables(self) -> None:
        """Keep tables of tidelog's own out of what topics' patterns allow."""
        if not self._meets_tables:
            return
        for table in _OWN:
            allowed = {
                action
                for (effect, _, name), actions in self._rules.items()
                if effect == "Allow" and name == table
                for action in actions
            }
            leases = {*_DELETE} if ("Allow", ANY_HOST, _LEASES) in self._rules and table == _OFFSETS else set()
            self._rules["Deny", ANY_HOST, table] |= _ALL - allowed - leases

    def _add(self, effect: str, acl: Acl, actions: Iterable[str], *objects: str) -> None:
        for name in objects:
            self._rules[effect, acl.host, name].update(actions)

    def _says_more(self, acl: Acl, why: str) -> None:
        if not _names_all(acl):
            self.gap(_shown(acl), why)

    def _left_out(self, acl: Acl, why: str) -> None:
        self.gap(f"{_shown(acl)} is left out", why)

    def _arn(self, name: str) -> str:
        return f"arn:aws:s3:::{self._root}/{name}"


def _pattern(acl: Acl) -> str:
    """The folders of the topics that an ACL names, as IAM writes them."""
    return f"{acl.name}*" if acl.pattern is AclPattern.PREFIXED else acl.name


def _may_name_topics(acl: Acl) -> bool:
    """Whether a topic may have a name that an ACL names. Others can be IAM's wildcards, or tables and their objects."""
    if _names_all(acl):
        return True
    if acl.pattern is AclPattern.PREFIXED:
        return names.why_invalid(f"{acl.name}x") is None
    return names.why_invalid(acl.name) is None and not names.is_table(acl.name)


def _may_name_tables(acl: Acl) -> bool:
    """Whether an ACL's pattern takes in names that begin with `__`."""
    return _pattern(acl).endswith("*") and (acl.name == ANY_NAME or "__".startswith(acl.name[:2]))


def _covers(acl: Acl, other: Acl) -> bool:
    """Whether an ACL names all that another one names."""
    if acl.pattern is AclPattern.LITERAL:
        return acl.name == ANY_NAME or (other.pattern is AclPattern.LITERAL and other.name == acl.name)
    return not _names_all(other) and other.name.startswith(acl.name)


def _overlap(acl: Acl, other: Acl) -> bool:
    """Whether there may be a name that both ACLs name."""
    return _names_all(acl) or _names_all(other) or _covers(acl, other) or _covers(other, acl)


def _names_all(acl: Acl) -> bool:
    return (acl.pattern, acl.name) == (AclPattern.LITERAL, ANY_NAME)


def _shown(acl: Acl) -> str:
    what = acl.resource.name.lower().replace("_", " ")
    name = f"{acl.name}*" if acl.pattern is AclPattern.PREFIXED else acl.name
    where = "" if acl.host == ANY_HOST else f" from {acl.host}"
    return f"{acl.permission.name} {acl.operation.name} on {what} '{name}'{where}"

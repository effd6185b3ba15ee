"""Access as rows: what is written is what is read, as JSON, as Parquet, and after a compaction."""

from hypothesis import given
from hypothesis import strategies as st

from tidelog.access.credentials import ScramCredential, ScramMechanism
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.quotas import Entity, Quota
from tidelog.access.rows import (
    KIND,
    SCHEMA,
    AccessFold,
    acl_row,
    client_metrics_row,
    key,
    quota_row,
    removed,
    scram_row,
    secret_row,
    tenant_row,
)
from tidelog.access.state import Tenant
from tidelog.log.rows.schema import Row

NAMES = st.sampled_from(["a", "b", "*", "<default>", "ü x"])
KEYS = st.binary(min_size=1, max_size=4)
ROWS = st.one_of(
    st.builds(
        acl_row,
        st.builds(
            Acl,
            st.sampled_from([r for r in AclResource if r > 1]),
            st.sampled_from([AclPattern.LITERAL, AclPattern.PREFIXED]),
            NAMES,
            NAMES,
            NAMES | st.just("10.0.0.0/8"),
            st.sampled_from([o for o in AclOperation if o > 1]),
            st.sampled_from([AclPermission.ALLOW, AclPermission.DENY]),
        ),
    ),
    st.builds(
        scram_row,
        NAMES,
        st.builds(ScramCredential, st.sampled_from(ScramMechanism), KEYS, KEYS, KEYS, st.integers(4096, 16384)),
    ),
    st.builds(
        quota_row,
        st.builds(Entity, st.none() | NAMES, st.none() | NAMES, st.none()),
        st.dictionaries(st.sampled_from(Quota), st.floats(0.001, 1e15)),
    ),
    st.builds(
        tenant_row,
        st.builds(
            Tenant,
            NAMES,
            NAMES,
            st.lists(NAMES, max_size=2).map(tuple),
            st.dictionaries(st.sampled_from(Quota), st.floats(0.001, 1e15)),
        ),
    ),
    st.builds(secret_row, KEYS),
    st.builds(client_metrics_row, NAMES, st.dictionaries(NAMES, NAMES, max_size=2)),
)
CHANGES = st.lists(st.tuples(ROWS, st.booleans()), max_size=12)


def rows_of(changes: list[tuple[Row, bool]]) -> list[Row]:
    return [row if stays or row.get("deleted") else removed(row) for row, stays in changes]


def fold_of(rows: list[Row]) -> AccessFold:
    fold = AccessFold()
    fold.take(rows)
    return fold


@given(CHANGES)
def test_json_gives_the_rows_back(changes: list[tuple[Row, bool]]) -> None:
    rows = rows_of(changes)
    assert fold_of([SCHEMA.from_json(SCHEMA.to_json(row)) for row in rows]) == fold_of(rows)


@given(CHANGES)
def test_the_newest_row_of_each_key_says_all(changes: list[tuple[Row, bool]]) -> None:
    rows = rows_of(changes)
    newest = {key(row): row for row in rows}
    kept = fold_of([row for row in newest.values() if not row.get("deleted")])
    assert kept == fold_of(rows)
    assert len(kept) == sum(not row.get("deleted") for row in newest.values())


@given(CHANGES, CHANGES)
def test_a_fork_goes_its_own_way(before: list[tuple[Row, bool]], after: list[tuple[Row, bool]]) -> None:
    fold = fold_of(rows_of(before))
    fork = fold.fork()
    fork.take(rows_of(after))
    assert fold == fold_of(rows_of(before))
    assert fork == fold_of([*rows_of(before), *rows_of(after)])
    assert KIND.name == "access"

"""Which errors of PostgreSQL end a task, and after which it connects again."""

from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest

from tidelog.connect.connectors.postgres.database import Database, is_lost, refused, stream_failure
from tidelog.connect.connectors.postgres.settings import read_settings
from tidelog.connect.data.errors import ConnectError, RetriableConnectError

SETTINGS = read_settings(
    {
        "topic.prefix": "shop",
        "database.hostname": "db",
        "database.user": "reader",
        "database.password": "secret",
        "database.dbname": "shop",
        "slot.name": "changes",
        "publication.name": "wanted",
        "table.include.list": "public.orders",
    }
)


@pytest.mark.parametrize(
    ("code", "closed", "lost"),
    [
        (None, 0, True),  # libpq's own: the server said nothing
        ("57P01", 0, True),  # the server ends
        ("57P02", 2, True),  # it crashed
        ("08006", 0, True),
        ("42704", 2, True),
        ("42704", 0, False),
        ("55000", 0, False),
    ],
)
def test_a_statement_fails_as_its_session_ends_or_is_refused(code: str | None, closed: int, lost: bool) -> None:
    assert is_lost(SimpleNamespace(pgcode=code), SimpleNamespace(closed=closed)) is lost


class BrokenConnection:
    """Its statements fail by an error that psycopg2 does not call operational."""

    def __init__(self, closed: int) -> None:
        self.closed = closed

    def cursor(self) -> Any:
        raise psycopg2.DatabaseError("error with status PGRES_TUPLES_OK and no message from the libpq")


@pytest.mark.parametrize("closed", [0, 2])
def test_a_question_over_a_connection_that_broke_may_be_asked_again(closed: int) -> None:
    database = Database.__new__(Database)
    database._settings = SETTINGS
    database.connection = BrokenConnection(closed)
    with pytest.raises(ConnectError) as failure:
        database.ask("SELECT 1")
    assert isinstance(failure.value, RetriableConnectError) is bool(closed)


class SaidError(Exception):
    """An error as psycopg2 has it."""

    def __init__(self, said: str, pgcode: str | None, **named: str) -> None:
        super().__init__(said)
        self.pgcode = pgcode
        names = ("schema_name", "table_name", "column_name")
        self.diag = SimpleNamespace(**{name: named.get(name) for name in names})


@pytest.mark.parametrize("code", ["42704", None])
@pytest.mark.parametrize("closed", [0, 2])
def test_a_publication_that_is_missing_ends_the_task_with_the_statement_that_makes_it(
    code: str | None, closed: int
) -> None:
    error = SaidError('ERROR: publication "wanted" does not exist', code)
    failure = stream_failure(error, SimpleNamespace(closed=closed), SETTINGS)
    assert not isinstance(failure, RetriableConnectError)
    assert 'CREATE PUBLICATION "wanted" FOR TABLE public.orders' in str(failure)
    assert "START_REPLICATION SLOT changes" in str(failure)


@pytest.mark.parametrize(
    ("code", "closed", "again"), [(None, 0, True), ("57P01", 0, True), ("55000", 2, True), ("55000", 0, False)]
)
def test_a_stream_that_broke_is_made_again_and_one_that_is_refused_is_not(
    code: str | None, closed: int, again: bool
) -> None:
    failure = stream_failure(SaidError("it ended", code), SimpleNamespace(closed=closed), SETTINGS)
    assert isinstance(failure, RetriableConnectError) is again
    assert "it ended" in str(failure)


def test_a_refused_statement_is_named_with_table_column_and_what_to_do() -> None:
    error = SaidError("permission denied", "42501", schema_name="public", table_name="orders", column_name="total")
    said = str(refused(error, "SELECT total FROM public.orders", SETTINGS))
    for part in ("public.orders.total", "Statement: SELECT total FROM public.orders", "GRANT SELECT", "reader"):
        assert part in said
    assert "secret" not in said

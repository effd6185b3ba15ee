"""Which errors of PostgreSQL end a task, and after which it connects again."""

from types import SimpleNamespace
from typing import Any

import psycopg2
import pytest

from tidelog.connect.connectors.postgres.database import Database, is_lost
from tidelog.connect.data.errors import ConnectError, RetriableConnectError


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
    database.connection = BrokenConnection(closed)
    with pytest.raises(ConnectError) as failure:
        database.ask("SELECT 1")
    assert isinstance(failure.value, RetriableConnectError) is bool(closed)

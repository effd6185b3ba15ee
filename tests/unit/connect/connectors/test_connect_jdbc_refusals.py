"""What is said of a statement that a database refuses."""

from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from tidelog.connect.connectors.jdbc.databases import failure_of, refusal_of


def test_a_refusal_has_the_statement_without_its_values():
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE orders (id INTEGER NOT NULL)")
        with pytest.raises(sa.exc.DBAPIError) as refused:
            connection.execute(sa.text("INSERT INTO orders (id) VALUES (:id)"), {"id": None})
    said = str(failure_of(refused.value, "a row of orders"))
    assert "a row of orders: NOT NULL constraint failed: orders.id. Statement: INSERT INTO orders (id) VALUES" in said


def test_a_refusal_has_the_table_and_the_column_that_the_server_names():
    diag = SimpleNamespace(schema_name="public", table_name="orders", column_name="total")
    original = type("DriverError", (Exception,), {"diag": diag})("integer out of range\n")
    error = sa.exc.DBAPIError("INSERT INTO\n orders", {"total": "secret"}, original)
    said = refusal_of(error)
    assert said == "integer out of range. It is about public.orders.total. Statement: INSERT INTO orders"

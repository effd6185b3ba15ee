"""Names of connectors that are not there: Debezium's are mapped, or refused with the nearest."""

import pytest

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.runtime.plugins import Plugins


def test_debeziums_postgresql_connector_is_there_by_its_own_name():
    found = Plugins().connector("io.debezium.connector.postgresql.PostgresConnector")
    assert found.__name__ == "PostgresConnector"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("io.debezium.connector.mysql.MySqlConnector", "The nearest is JdbcSource: it asks tables"),
        ("io.debezium.connector.mariadb.MariaDbConnector", "The nearest is JdbcSource: it asks tables"),
        ("io.debezium.connector.sqlserver.SqlServerConnector", "The nearest is JdbcSource: its databases are"),
        ("io.debezium.connector.oracle.OracleConnector", "The nearest is JdbcSource: its databases are"),
        ("io.debezium.connector.jdbc.JdbcSinkConnector", "The nearest is JdbcSinkConnector: its keys are Confluent's"),
        ("io.debezium.connector.mongodb.MongoDbConnector", "it writes through a broker of the lake"),
        ("io.debezium.connector.postgres.PostgresConnector",
         "The nearest is io.debezium.connector.postgresql.PostgresConnector"),
        ("DeltaSnk", "The nearest is tidelog.connect.DeltaSink"),
    ],
)  # fmt: skip
def test_a_connector_that_is_not_there_is_refused_with_the_nearest(wanted, said):
    with pytest.raises(ConnectConfigError) as refused:
        Plugins().connector(wanted)
    assert said in str(refused.value)


def test_nothing_is_near_to_what_is_like_none():
    with pytest.raises(ConnectConfigError) as refused:
        Plugins().connector("Xyzzy")
    assert "nearest" not in str(refused.value)

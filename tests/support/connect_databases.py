"""Databases for the JDBC connectors: SQLite, and PostgreSQL where it is installed."""

from dataclasses import dataclass

import sqlalchemy as sa


@dataclass
class Database:
    """A database: its address as the connectors take it, and statements of a test."""

    url: str
    engine: sa.Engine

    def run(self, *statements):
        with self.engine.begin() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))

    def rows(self, statement):
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(statement))]


def sqlite_database(folder):
    path = folder / "test.db"
    return Database(f"jdbc:sqlite:{path}", sa.create_engine(f"sqlite:///{path}"))


def postgres_database(server, name):
    server.run(f'CREATE DATABASE "{name}"')
    place = f"{server.host}:{server.port}/{name}"
    url = f"postgresql+psycopg2://postgres@{place}"
    return Database(f"jdbc:postgresql://{place}?user=postgres", sa.create_engine(url, poolclass=sa.NullPool))

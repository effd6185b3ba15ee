"""One server for this process's tests; those that kill it have their own."""

from collections.abc import Iterator

import pytest
from support.postgres import Postgres, running_postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A running server."""
    with running_postgres({"fsync": "off"}) as server:
        yield server

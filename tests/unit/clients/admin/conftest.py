"""A lake in memory and a client that looks after it."""

import pytest
from support.logs import memory_lake

from tidelog.admin import AdminClient


@pytest.fixture
def lake():
    return memory_lake()[0]


@pytest.fixture
def client(lake):
    with AdminClient({"lake": lake}) as client:
        yield client

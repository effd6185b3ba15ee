"""A lake in memory, and requests to a broker over it."""

import pytest
from support.broker_requests import Requests
from support.logs import memory_lake


@pytest.fixture
def lake():
    return memory_lake()[0]


@pytest.fixture
def requests(lake):
    with Requests(lake) as requests:
        yield requests

"""A lake in memory and a broker over it that is asked without sockets."""

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

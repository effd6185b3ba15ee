"""Fixtures of every layer, and how Hypothesis runs its property tests."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from support.made_up_time import made_up_time_counts_as_right
from support.versitygw import s3

__all__ = ["s3"]

# A busy machine fails no test: neither by how long an example takes, nor by how long one takes to make.
settings.register_profile("tidelog", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tidelog")


@pytest.fixture(autouse=True, scope="session")
def _made_up_time() -> Iterator[None]:
    with made_up_time_counts_as_right():
        yield

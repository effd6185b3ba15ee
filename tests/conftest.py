"""Fixtures of every layer, how tests are dealt to lanes, and how Hypothesis runs its property tests."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from support.forked_lanes import pytest_addoption, pytest_runtestloop
from support.lanes import Durations
from support.made_up_time import made_up_time_counts_as_right
from support.versitygw import s3

__all__ = ["pytest_addoption", "pytest_runtestloop", "s3"]

# A busy machine fails no test: neither by how long an example takes, nor by how long one takes to make. `make test` has
# a budget of examples for each property that asks for no number of its own; `make reliability` has 400, and
# `make quick`, which runs for each save, half.
settings.register_profile("tidelog", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=20)
settings.register_profile("night", settings.get_profile("tidelog"), max_examples=400)
settings.register_profile("quick", settings.get_profile("tidelog"), max_examples=10)
settings.load_profile("tidelog")


@pytest.fixture(autouse=True, scope="session")
def _made_up_time() -> Iterator[None]:
    with made_up_time_counts_as_right():
        yield


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Durations())


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Tests in their thousands stay to the end: what looks for garbage need not look at them each time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()

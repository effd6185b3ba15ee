"""Clients that push metrics: which requests come in time, and what each other one is refused with."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tidelog.broker.telemetry import instances as module
from tidelog.broker.telemetry.errors import (
    TelemetryTooLargeError,
    UnknownSubscriptionIdError,
    UnsupportedCompressionTypeError,
)
from tidelog.broker.telemetry.instances import Instances
from tidelog.broker.telemetry.subscriptions import MetricsSubscription
from tidelog.broker.wire.errors import InvalidRequestError, ThrottlingQuotaExceededError

ID = UUID(int=7)
CLIENT = dict.fromkeys(
    ("client_id", "client_software_name", "client_software_version", "client_source_address", "client_source_port"), ""
)


class Client:
    """A client of a broker with one subscription, of an interval of 1 s."""

    def __init__(self) -> None:
        self.instances = Instances(most_bytes=100)
        self.subscribe("a.")
        self.subscription_id = 0

    def subscribe(self, metrics: str) -> None:
        keys = {"metrics": metrics, "interval.ms": "1000"}
        self.instances.go_by({"s": MetricsSubscription.parse(keys)})

    def asks(self, now_s: float) -> None:
        self.subscription_id = self.instances.asks(ID, CLIENT, now_s).subscription_id

    def pushes(self, now_s: float, **other: Any) -> None:
        push = {"subscription_id": self.subscription_id, "compression": 0, "size": 10, "terminating": False}
        self.instances.pushes(other.pop("instance", ID), CLIENT, now_s, **push | other)


@pytest.fixture
def client() -> Client:
    made = Client()
    made.asks(10.0)
    return made


def refused(error: type[Exception], call: Callable[..., None], *args: float, **other: Any) -> None:
    with pytest.raises(error):
        call(*args, **other)


def test_a_client_asks_once_and_pushes_once_an_interval(client: Client) -> None:
    client.pushes(10.1)  # the first one after a question may come at once
    refused(ThrottlingQuotaExceededError, client.pushes, 11.0)
    client.pushes(11.1)
    refused(ThrottlingQuotaExceededError, client.asks, 11.2)
    client.asks(12.1)
    client.pushes(12.2)


def test_another_subscription_is_heard_of_at_the_next_push(client: Client) -> None:
    client.pushes(10.1)
    client.subscribe("b.")
    refused(UnknownSubscriptionIdError, client.pushes, 11.1)
    client.asks(11.15)
    client.pushes(11.2)
    client.subscribe("b.")  # the same again
    client.pushes(12.2)


def test_a_broker_that_began_anew_takes_a_push_by_the_same_subscription(client: Client) -> None:
    other = Client()
    other.subscription_id = client.subscription_id
    other.pushes(10.1)


def test_a_refused_codec_may_be_asked_about_at_once(client: Client) -> None:
    refused(UnsupportedCompressionTypeError, client.pushes, 10.1, compression=5)
    refused(UnsupportedCompressionTypeError, client.pushes, 11.1, compression=-1)
    client.asks(11.2)
    client.pushes(11.3, compression=4)


def test_sizes_and_ids_are_checked(client: Client) -> None:
    refused(TelemetryTooLargeError, client.pushes, 10.1, size=101)
    for reserved in (UUID(int=0), UUID(int=1)):
        refused(InvalidRequestError, client.pushes, 20.0, instance=reserved)
    client.pushes(20.0, size=100)


def test_the_last_push_may_come_at_any_time_and_is_the_last(client: Client) -> None:
    client.pushes(10.1)
    client.pushes(10.2, terminating=True)
    refused(InvalidRequestError, client.pushes, 11.5)


def test_clients_are_forgotten(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    for number in range(100, 110):
        client.instances.asks(UUID(int=number), CLIENT, 11.0)
    assert len(client.instances) == 3
    client.instances.asks(UUID(int=200), CLIENT, 71.1)  # those before were silent for more than a minute
    assert len(client.instances) == 1

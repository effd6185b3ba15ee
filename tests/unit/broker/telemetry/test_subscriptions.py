"""Subscriptions of clients' metrics: what may be set, whom they are for, what a client is asked for by all of them."""

from uuid import UUID

import pytest

from tidelog.broker.telemetry.subscriptions import MetricsSubscription, wanted
from tidelog.broker.wire.errors import InvalidRequestError
from tidelog.log.base.errors import InvalidConfigError, TidelogError

ID, OTHER = UUID(int=7), UUID(int=8)
CLIENT = {
    "client_instance_id": str(ID),
    "client_id": "shop-1",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.1.2",
    "client_source_address": "10.0.0.7",
    "client_source_port": "4711",
}


def asked(*subscriptions: dict[str, str], instance: UUID = ID) -> tuple[tuple[str, ...], int]:
    wants = wanted([MetricsSubscription.parse(one) for one in subscriptions], CLIENT, instance)
    return wants.metrics, wants.interval_ms


def test_all_subscriptions_of_a_client_count_together() -> None:
    assert asked() == ((), 300_000)
    assert asked({"metrics": "b., a."}) == (("a.", "b."), 300_000)
    assert asked({"metrics": "a.", "interval.ms": "900"}, {"metrics": "b.", "interval.ms": "100"}) == (
        ("a.", "b."),
        100,
    )
    assert asked({"metrics": "a."}, {"metrics": "*"}) == (("*",), 300_000)
    assert asked({"metrics": "a.", "match": "client_id=other", "interval.ms": "100"}) == ((), 300_000)


MATCHES = [
    ("", True),
    ("client_id=shop-.*", True),
    ("client_id=shop", False),  # the whole of it matches
    ("client_software_name=apache-kafka-java, client_software_version=4\\.1\\..*", True),
    ("client_software_name=apache-kafka-java,client_software_version=4\\.2\\..*", False),
    (f"client_instance_id={ID}", True),
    ("client_source_address=10\\.0\\.0\\..*,client_source_port=[0-9]+", True),
]


@pytest.mark.parametrize(("match", "is_meant"), MATCHES)
def test_a_client_is_meant_by_all_patterns(match: str, is_meant: bool) -> None:
    assert MetricsSubscription.parse({"match": match}).matches(CLIENT) is is_meant


REFUSED: list[tuple[dict[str, str], type[TidelogError], str]] = [
    ({"interval.ms": "99"}, InvalidRequestError, "between 100 and 3600000"),
    ({"interval.ms": "3600001"}, InvalidRequestError, "between 100 and 3600000"),
    ({"interval.ms": "soon"}, InvalidConfigError, "Not a number of type INT"),
    ({"interval": "100"}, InvalidRequestError, "Unknown client metrics configuration: interval"),
    ({"match": "client_id"}, InvalidConfigError, "Illegal client matching pattern: client_id"),
    ({"match": "client_id="}, InvalidConfigError, "Illegal client matching pattern"),
    ({"match": "rack=a"}, InvalidConfigError, "Illegal client matching pattern: rack=a"),
    ({"match": "client_id=(a"}, InvalidConfigError, "not a valid regular expression"),
    ({"match": "client_id=a\\1"}, InvalidConfigError, "not a valid regular expression"),
    ({"match": "client_id=a=b"}, InvalidConfigError, "Illegal client matching pattern"),
    ({"match": ",".join(["client_id=a"] * 101)}, InvalidConfigError, "at most 100 patterns"),
    ({"metrics": "x" * 256}, InvalidConfigError, "255 characters"),
    ({"metrics": ",".join(map(str, range(1_001)))}, InvalidConfigError, "at most 1000"),
]


@pytest.mark.parametrize(("keys", "error", "words"), REFUSED)
def test_what_is_refused(keys: dict[str, str], error: type[TidelogError], words: str) -> None:
    with pytest.raises(error, match=words):
        MetricsSubscription.parse(keys)


def test_a_subscription_has_an_id_by_what_it_asks_for_and_of_whom() -> None:
    one = MetricsSubscription.parse({"metrics": "a."})
    first = wanted([one], CLIENT, ID)
    assert -(2**31) <= first.subscription_id < 2**31
    assert first == wanted([one, one], CLIENT, ID)
    assert first.subscription_id != wanted([one], CLIENT, OTHER).subscription_id
    assert first.subscription_id != wanted([], CLIENT, ID).subscription_id
    assert first.takes("a.b")
    assert not first.takes("b.a.")


def test_a_metric_is_taken_by_its_beginning() -> None:
    asked = wanted([MetricsSubscription.parse({"metrics": "a.,b"})], CLIENT, ID)
    assert [asked.takes(name) for name in ("a.x", "a", "bc", "c")] == [True, False, True, False]
    assert not wanted([], CLIENT, ID).takes("a")
    assert wanted([MetricsSubscription.parse({"metrics": "*,a"})], CLIENT, ID).takes("anything")

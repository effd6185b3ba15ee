"""The configuration of a registry's client: every key counts, and what can't be is refused with its name."""

import pytest
from support.logs import memory_lake

from tidelog.clients.schema_registry.settings import KEYS, ClientSettings
from tidelog.schema_registry import SchemaRegistryClient

URL = {"url": "http://a:8081"}


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({}, "needs either url"),
        ({"url": "http://a", "lake": "b"}, "not both"),
        ({"url": "localhost:8081"}, "must be an address"),
        ({"url": " , "}, "must be an address"),
        ({"url": "http://a, ftp://b"}, "must be an address"),
        ({**URL, "no.such.key": 1}, r"Unrecognized properties: no\.such\.key"),
        ({**URL, "cache.capacity": 0}, r"cache\.capacity"),
        ({**URL, "max.retries": -1}, r"max\.retries must not be negative"),
        ({**URL, "basic.auth.user.info": "ann"}, "user:password"),
        ({"url": "http://ann:x@a", "basic.auth.user.info": "ann:x"}, "leave one of them out"),
        ({**URL, "ssl.key.location": "k.pem"}, r"need ssl\.certificate\.location"),
        ({**URL, "bearer.auth.token": "t"}, r"need bearer\.auth\.credentials\.source"),
        ({**URL, "bearer.auth.credentials.source": "MAGIC"}, "STATIC_TOKEN or CUSTOM"),
        ({**URL, "bearer.auth.credentials.source": "STATIC_TOKEN"}, r"STATIC_TOKEN needs bearer\.auth\.token"),
        ({**URL, "bearer.auth.credentials.source": "OAUTHBEARER"}, r"OAUTHBEARER needs bearer\.auth\.issuer"),
        ({**URL, "bearer.auth.credentials.source": "CUSTOM"}, r"CUSTOM needs bearer\.auth\.custom"),
        ({**URL, "bearer.auth.credentials.source": "OAUTHBEARER_AZURE_IMDS"}, r"endpoint\.query"),
        (
            {**URL, "basic.auth.user.info": "a:b", "bearer.auth.credentials.source": "STATIC_TOKEN"},
            "by a password or by a token",
        ),
    ],
)
def test_what_can_not_be_is_refused(conf, message):
    with pytest.raises(ValueError, match=message):
        SchemaRegistryClient(conf)


@pytest.mark.parametrize(
    "key",
    ["cache.capacity", "cache.latest.ttl.sec", "max.retries", "retries.wait.ms", "retries.max.wait.ms", "timeout"],
)
def test_numbers_are_numbers(key):
    for value in ("1", True, []):
        with pytest.raises(TypeError, match=key.replace(".", r"\.")):
            SchemaRegistryClient({**URL, key: value})


@pytest.mark.parametrize("key", ["url", "proxy", "ssl.key.location", "ssl.ca.location", "basic.auth.user.info"])
def test_texts_are_texts(key):
    with pytest.raises(TypeError, match=key.replace(".", r"\.")):
        SchemaRegistryClient({**URL, key: 7})


def test_a_lake_takes_no_keys_of_requests():
    lake = memory_lake()[0]
    for key in sorted(KEYS.keys() - {"url", "lake", "topic", "cache.capacity", "cache.latest.ttl.sec"}):
        with pytest.raises(ValueError, match="a client of a lake sends no requests"):
            SchemaRegistryClient({"lake": lake, key: "x"})


def test_keys_of_requests():
    found = ClientSettings.of(
        {
            "url": "http://ann:p%40ss@a:1/ , https://b",
            "timeout": 2,
            "proxy": "http://p",
            "ssl.ca.location": "ca",
            "ssl.certificate.location": "c",
            "ssl.key.location": "k",
            "ssl.key.password": "x",
            "max.retries": 1,
            "retries.wait.ms": 2,
            "retries.max.wait.ms": 3,
            "cache.capacity": 4,
            "cache.latest.ttl.sec": 5,
        }
    )
    http = found.http
    assert (http.urls, http.user) == (("http://a:1", "https://b"), ("ann", "p@ss"))
    assert (http.timeout_s, http.proxy, http.ca, http.certificate, http.key) == (2, "http://p", "ca", "c", "k")
    assert (http.key_password, http.retries, http.wait_ms, http.most_wait_ms) == ("x", 1, 2, 3)
    assert (found.capacity, found.latest_ttl_s) == (4, 5)


def test_secrets_are_not_shown():
    conf = {**URL, "basic.auth.user.info": "ann:hidden", "ssl.certificate.location": "c", "ssl.key.password": "hidden"}
    assert "hidden" not in repr(ClientSettings.of(conf))
    conf = {**URL, "bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "hidden"}
    assert "hidden" not in repr(ClientSettings.of(conf))

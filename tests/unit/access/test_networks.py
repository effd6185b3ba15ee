"""Hosts of ACLs as networks (KIP-1276): which addresses they mean, in which spelling they are kept, what is refused."""

import ipaddress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import memory_lake

from tidelog.access.access_log import AccessLog
from tidelog.access.authorizer import Authorizer, Subject
from tidelog.access.model import (
    Acl,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    covers_host,
    is_from,
    network_of,
    seen_address,
    seen_host,
)
from tidelog.access.rows import SCHEMA, acl_row
from tidelog.access.rules import require_valid
from tidelog.log.base.errors import InvalidConfigError

ALLOW = Acl(AclResource.TOPIC, AclPattern.LITERAL, "t", "User:a", "10.0.0.0/8", AclOperation.READ, AclPermission.ALLOW)

# (a host of an ACL, a client, whether it is meant)
MEANT = [
    ("10.0.0.0/8", "10.255.255.255", True),
    ("10.0.0.0/8", "11.0.0.0", False),
    ("192.168.1.128/25", "192.168.1.128", True),
    ("192.168.1.128/25", "192.168.1.127", False),
    ("10.0.0.7/32", "10.0.0.7", True),
    ("10.0.0.7/32", "10.0.0.8", False),
    ("0.0.0.0/0", "203.0.113.9", True),
    ("0.0.0.0/0", "2001:db8::1", False),
    ("::/0", "2001:db8::1", True),
    ("::/0", "10.0.0.1", False),
    ("2001:db8::/32", "2001:db8:ffff::1", True),
    ("2001:db8::/32", "2001:db9::1", False),
    ("::1/128", "::1", True),
    ("::ffff:10.0.0.0/104", "10.1.2.3", True),
    ("10.0.0.0/8", "", False),
    ("10.0.0.0/8", "fe80::1%eth0", False),
]


@pytest.mark.parametrize(("host", "client", "meant"), MEANT)
def test_a_network_means_its_addresses(host: str, client: str, meant: bool) -> None:
    assert is_from(seen_address(client), seen_host(host)) is meant


HOSTILE = [
    "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "/8", "/", "10.0.0.0/08", "10.0.0.0/8/8", "10.0.0.0/255.0.0.0",
    "10.0.0.0/0.255.255.255", "10.0.0/8", "10.0.0.0.0/8", "010.0.0.0/8", "*/8", "host/8", "::/129", "fe80::1%eth0/64",
    "10.0.0.0/8 ", " 10.0.0.0/8", "10.0.0.0/\u0668", "1" * 10_000 + "/8", "10.0.0.0/" + "9" * 10_000, "0x0a000000/8",
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_network_is_refused_and_means_nothing(host: str) -> None:
    with pytest.raises(InvalidConfigError, match="host is wrong"):
        require_valid(replace(ALLOW, host=host))
    assert not is_from("10.0.0.1", host)
    assert seen_host(host) == host


def test_a_network_has_one_spelling() -> None:
    assert [seen_host(host) for host in ("10.1.2.3/8", "2001:DB8:0::/32", "::ffff:10.0.0.0/104", "0:0::1", "*")] == [
        "10.0.0.0/8",
        "2001:db8::/32",
        "10.0.0.0/8",
        "::1",
        "*",
    ]
    lake = memory_lake()[0]
    log = AccessLog(lake)
    log.add_acls([replace(ALLOW, host="10.9.9.9/8")])
    assert log.look().acls == {ALLOW}
    assert log.delete_acls([AclFilter(host="10.1.1.1/8")]) == [[ALLOW]]


def test_an_earlier_program_refuses_a_table_with_networks() -> None:
    """It would take a denied network for an address, and deny no client."""
    assert SCHEMA.version_of([acl_row(ALLOW)]) == 2
    assert SCHEMA.version_of([acl_row(replace(ALLOW, host="10.0.0.1"))]) == 1


def test_a_denied_network_wins_over_an_allowed_address() -> None:
    denied = replace(ALLOW, host="10.1.0.0/16", permission=AclPermission.DENY)
    authorizer = Authorizer([ALLOW, replace(ALLOW, host="10.1.0.7"), denied])

    def may(host: str) -> bool:
        return authorizer.verdict(Subject("User:a", host), AclOperation.READ, AclResource.TOPIC, "t").allowed

    assert [may(host) for host in ("10.0.0.1", "10.1.0.7", "10.2.0.0", "11.0.0.1")] == [True, False, True, False]
    assert authorizer.may_any(Subject("User:a", "10.0.0.1"), AclOperation.READ, AclResource.TOPIC)
    assert not authorizer.may_any(Subject("User:a", "11.0.0.1"), AclOperation.READ, AclResource.TOPIC)


NUMBERS = st.integers(0, 2**32 - 1)


@given(NUMBERS, st.integers(0, 32), NUMBERS)
def test_a_network_means_what_shares_its_bits(network: int, length: int, client: int) -> None:
    host = f"{ipaddress.IPv4Address(network)}/{length}"
    shares = network >> (32 - length) == client >> (32 - length)
    assert is_from(str(ipaddress.IPv4Address(client)), host) is shares


@given(NUMBERS, st.integers(0, 32), NUMBERS, st.integers(0, 32))
def test_a_network_covers_what_is_within_it(outer: int, length: int, inner: int, bits: int) -> None:
    around, within = (f"{ipaddress.IPv4Address(one)}/{of}" for one, of in ((outer, length), (inner, bits)))
    assert covers_host(around, within) is network_of(within).subnet_of(network_of(around))  # type: ignore[arg-type]
    assert covers_host("*", within)
    assert not covers_host(around, "*")

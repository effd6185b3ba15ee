"""Subjects of certificates as Java writes them: what `ssl.principal.mapping.rules` and ACLs are written against."""

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from support.certificates import name

from tidelog.access.distinguished_names import rfc_2253

O, OU, C, ST, EMAIL = (  # noqa: E741 - as names have them
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.COUNTRY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.EMAIL_ADDRESS,
)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (name("ann"), "CN=ann"),
        (
            name("ann", (C, "DE"), (ST, "Berlin"), (O, "Example"), (OU, "sales")),
            "CN=ann,OU=sales,O=Example,ST=Berlin,C=DE",
        ),
        (name("a,b+c=d;<e>"), r"CN=a\,b\+c\=d\;\<e\>"),
        (name('say "hi"\\#1'), r"CN=say \"hi\"\\\#1"),
        (name(" ann  "), r"CN=\ ann\ \ "),
        (name("  "), r"CN=\ \ "),
        (name("Jörg"), "CN=Jörg"),
        (name("ann", (EMAIL, "a@b.c")), "CN=ann,1.2.840.113549.1.9.1=#16056140622e63"),
        (name("x", (EMAIL, "a" * 130)), "CN=x,1.2.840.113549.1.9.1=#168182" + "61" * 130),
        (x509.Name([]), ""),
    ],
)
def test_a_name_is_written_as_java_writes_it(given, text):
    assert rfc_2253(given) == text


def test_attributes_of_one_step_are_joined_by_plus():
    step = x509.RelativeDistinguishedName(
        [x509.NameAttribute(NameOID.COMMON_NAME, "ann"), x509.NameAttribute(NameOID.USER_ID, "7")]
    )
    top = x509.RelativeDistinguishedName([x509.NameAttribute(O, "Example")])
    assert rfc_2253(x509.Name([top, step])) in ("CN=ann+UID=7,O=Example", "UID=7+CN=ann,O=Example")

"""Key stores of Java's: PKCS#12 and JKS give what PEM would."""

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509 import load_pem_x509_certificates
from support.certificates import Authority
from support.java_stores import PASSWORD, jks, pkcs12, trusting

from tidelog.server.base.java_stores import StoreError, is_store, pem_of


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def content(pem, password=None):
    """The key and the certificates of PEM, as bytes."""
    key = load_pem_private_key(pem, password and password.encode())
    found = [one.public_bytes(Encoding.DER) for one in load_pem_x509_certificates(pem)]
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()), found


@pytest.mark.parametrize("kind", ["p12", "jks"])
@pytest.mark.parametrize("key_password", [None, PASSWORD])
def test_a_key_store_gives_its_key_and_certificate(tmp_path, authority, kind, key_password):
    issued = authority.issue("broker.pem")
    store = pkcs12(tmp_path / "store.p12", issued)
    path = jks(tmp_path / "store.jks", store) if kind == "jks" else store
    data = path.read_bytes()
    assert is_store(data)
    assert content(pem_of(data, PASSWORD, key_password), key_password) == content(issued.read_bytes())


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_a_trust_store_gives_its_authorities(tmp_path, authority, kind):
    data = trusting(tmp_path / "trust", authority.path, kind).read_bytes()
    assert load_pem_x509_certificates(pem_of(data, PASSWORD)) == load_pem_x509_certificates(authority.path.read_bytes())


def test_pem_is_no_store(authority):
    assert not is_store(authority.path.read_bytes())


@pytest.mark.parametrize("kind", ["p12", "jks"])
def test_another_password_is_named(tmp_path, authority, kind):
    store = pkcs12(tmp_path / "store.p12", authority.issue("broker.pem"))
    data = (jks(tmp_path / "store.jks", store) if kind == "jks" else store).read_bytes()
    with pytest.raises(StoreError, match="its password is another one"):
        pem_of(data, "wrong")


def test_a_key_with_a_password_of_its_own(tmp_path, authority):
    data = jks(tmp_path / "store.jks", pkcs12(tmp_path / "store.p12", authority.issue("broker.pem"))).read_bytes()
    with pytest.raises(StoreError, match=r"give that as ssl\.key\.password"):
        pem_of(data, PASSWORD, "another")


@pytest.mark.parametrize("data", [b"\x30\x82", b"\xfe\xed\xfe\xed\0\0\0\2", b"\xce\xce\xce\xce"])
def test_what_is_no_store_after_all(data):
    with pytest.raises(StoreError):
        pem_of(data, PASSWORD)

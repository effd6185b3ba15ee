"""Java's key stores, PKCS#12 and JKS, as PEM: certificates and private keys as OpenSSL reads them."""

import hashlib
import struct
from collections.abc import Iterator
from typing import Final

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
from cryptography.x509 import load_der_x509_certificate

from tidelog.log.base.errors import InvalidConfigError

# How the files begin. JCEKS is JKS's relative with other ciphers, which keytool has not written by itself since Java 9.
JKS: Final = b"\xfe\xed\xfe\xed"
JCEKS: Final = b"\xce\xce\xce\xce"
DER: Final = b"\x30"
_KEY_ENTRY: Final = 1
_SALT: Final = 20
_WHITENER: Final = b"Mighty Aphrodite"


class StoreError(InvalidConfigError):
    """A store that can't be read; the message says why, and names no file."""


def is_store(data: bytes) -> bool:
    """Whether a file's bytes are a store of Java's, and no PEM."""
    return data.startswith((JKS, JCEKS, DER))


def pem_of(data: bytes, password: str, key_password: str | None = None) -> bytes:
    """A store as PEM: the first private key and its certificates, or the certificates that it trusts.

    The key is encrypted by `key_password`, where one is given. Raises `StoreError`.
    """
    if data.startswith(JCEKS):
        raise StoreError("it is JCEKS. 'keytool -importkeystore' makes PKCS12 of it (-deststoretype PKCS12).")
    key, certificates = _of_jks(data, password, key_password) if data.startswith(JKS) else _of_pkcs12(data, password)
    parts = [load_der_x509_certificate(one).public_bytes(Encoding.PEM) for one in certificates]
    if key is not None:
        hidden = BestAvailableEncryption(key_password.encode()) if key_password else NoEncryption()
        parts.append(load_der_private_key(key, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden))
    return b"".join(parts)


def _of_pkcs12(data: bytes, password: str) -> tuple[bytes | None, list[bytes]]:
    try:
        store = load_pkcs12(data, password.encode())
    except ValueError as e:
        raise StoreError(f"its password is another one, or it is no PKCS#12: {e}.") from e
    key = None
    if store.key is not None:
        key = store.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    certificates = [store.cert] if store.cert is not None else []
    return key, [one.certificate.public_bytes(Encoding.DER) for one in (*certificates, *store.additional_certs)]


def _of_jks(data: bytes, password: str, key_password: str | None) -> tuple[bytes | None, list[bytes]]:
    signed = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + data[:-_SALT], usedforsecurity=False)
    if signed.digest() != data[-_SALT:]:
        raise StoreError("its password is another one, or the file is damaged.")
    trusted: list[bytes] = []
    try:
        for key, certificates in _entries(data):
            if key is not None:
                return _opened(key, key_password or password), certificates
            trusted += certificates
    except (struct.error, IndexError, UnicodeDecodeError) as e:
        raise StoreError(f"it is no JKS that can be read: {e}.") from e
    return None, trusted


def _entries(data: bytes) -> Iterator[tuple[bytes | None, list[bytes]]]:
    """(protected key or None, its certificates or the trusted one) of each entry."""
    version, count = struct.unpack_from(">ii", data, 4)
    at = 12

    def take(form: str) -> bytes:
        nonlocal at
        (size,) = struct.unpack_from(form, data, at)
        start = at + struct.calcsize(form)
        at = start + size
        if at > len(data) or size < 0:
            raise IndexError("an entry is longer than the file")
        return data[start:at]

    def certificate() -> bytes:
        if version == 2:
            take(">H")  # X.509
        return take(">i")

    for _ in range(count):
        (tag,) = struct.unpack_from(">i", data, at)
        at += 4
        take(">H")  # its alias
        at += 8  # its time
        if tag == _KEY_ENTRY:
            key = take(">i")
            (chain,) = struct.unpack_from(">i", data, at)
            at += 4
            yield key, [certificate() for _ in range(chain)]
        else:
            yield None, [certificate()]


def _opened(protected: bytes, password: str) -> bytes:
    """A private key of JKS: its bytes, XORed with a stream of SHA-1 of the password. Raises `StoreError`."""
    sealed = _octets(protected)
    salt, hidden, check = sealed[:_SALT], sealed[_SALT:-_SALT], sealed[-_SALT:]
    word, digest, stream = password.encode("utf-16-be"), salt, b""
    while len(stream) < len(hidden):
        digest = hashlib.sha1(word + digest, usedforsecurity=False).digest()
        stream += digest
    plain = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    if hashlib.sha1(word + plain, usedforsecurity=False).digest() != check:
        raise StoreError("its private key has another password: give that as ssl.key.password.")
    return plain


def _octets(der: bytes) -> bytes:
    """The encrypted data of an EncryptedPrivateKeyInfo: SEQUENCE { SEQUENCE, OCTET STRING }."""
    start, _ = _header(der, 0)
    algorithm, size = _header(der, start)
    start, size = _header(der, algorithm + size)
    return der[start : start + size]


def _header(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the element at `at` starts, and its size."""
    first = der[at + 1]
    if first < 0x80:
        return at + 2, first
    more = first & 0x7F
    return at + 2 + more, int.from_bytes(der[at + 2 : at + 2 + more], "big")

"""Key stores of Java's for tests: PKCS#12 and JKS of what an authority has issued."""

import subprocess
from pathlib import Path

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate, load_pem_x509_certificates

PASSWORD = "s3cret-store"


def pkcs12(path: Path, issued: Path, password: str = PASSWORD) -> Path:
    """A key store with the certificate and the key of a PEM file."""
    pem = issued.read_bytes()
    key, (certificate, *more) = load_pem_private_key(pem, None), load_pem_x509_certificates(pem)
    path.write_bytes(
        serialize_key_and_certificates(b"broker", key, certificate, more, BestAvailableEncryption(password.encode()))
    )
    return path


def trusting(path: Path, authority: Path, kind: str = "PKCS12", password: str = PASSWORD) -> Path:
    """A trust store, as keytool makes it, with an authority's certificate."""
    load_pem_x509_certificate(authority.read_bytes())
    _keytool("-importcert", "-noprompt", "-alias", "ca", "-file", authority, "-keystore", path, *_of(kind, password))
    return path


def jks(path: Path, store: Path, password: str = PASSWORD) -> Path:
    """The JKS that keytool makes of a PKCS#12."""
    _keytool(
        *("-importkeystore", "-srckeystore", store, "-srcstorepass", password, "-destkeystore", path),
        *("-deststoretype", "JKS", "-deststorepass", password, "-destkeypass", password),
    )
    return path


def _of(kind: str, password: str) -> tuple[str, ...]:
    return "-storetype", kind, "-storepass", password


def _keytool(*words: Path | str) -> None:
    subprocess.run(["keytool", *map(str, words)], check=True, capture_output=True)

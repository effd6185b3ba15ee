"""Certificates for tests: an authority of their own, and what it signs, as PEM files."""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


def name(common: str, *more: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    """A distinguished name: CN, and before it what is less special."""
    attributes = [*more, (NameOID.COMMON_NAME, common)]
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])


class Authority:
    """An authority in a folder. `path`: its certificate."""

    def __init__(self, folder: Path, common: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = name(common)
        certificate = self._signed(self._name, self._key, datetime.now(UTC) + 30 * DAY, (), is_authority=True)
        self.path = folder / f"{common}.pem"
        self.path.write_bytes(certificate.public_bytes(Encoding.PEM))

    def issue(
        self,
        file: str,
        subject: x509.Name | str = "broker",
        *,
        hosts: Sequence[str] = ("localhost", "127.0.0.1"),
        lasts: timedelta = DAY,
        password: str | None = None,
    ) -> Path:
        """A certificate and its key in one file. A negative `lasts`: it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        whose = name(subject) if isinstance(subject, str) else subject
        certificate = self._signed(whose, key, datetime.now(UTC) + lasts, hosts, is_authority=False)
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        path = self._folder / file
        replaced = path.with_suffix(".new")
        replaced.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption) + certificate.public_bytes(Encoding.PEM)
        )
        replaced.replace(path)
        return path

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        until: datetime,
        hosts: Sequence[str],
        *,
        is_authority: bool,
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(until - 60 * DAY)
            .not_valid_after(until)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if hosts:
            names = [_general_name(host) for host in hosts]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

"""TLS of listeners, by the standard library's `ssl`: contexts of PEM, PKCS#12 and JKS, read again when files change."""

import logging
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Final

from cryptography.x509 import Certificate, load_pem_x509_certificates

from tidelog.access.distinguished_names import rfc_2253
from tidelog.log.base.errors import InvalidConfigError
from tidelog.server.base.java_stores import StoreError, is_store, pem_of
from tidelog.server.base.listener_settings import ClientAuth, TlsSettings

logger = logging.getLogger("tidelog.broker.base.tls")  # where its lines are looked for

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
_KEYSTORE: Final = "ssl.keystore.location"
_TRUSTSTORE: Final = "ssl.truststore.location"
# The files of a folder in place of a store's file, as Kubernetes lays a secret of TLS.
_IN_FOLDER: Final = {_KEYSTORE: ("tls.crt", "tls.key"), _TRUSTSTORE: ("ca.crt",)}


class TlsError(InvalidConfigError):
    """Files that TLS can't be spoken with. Its message names the file, and what to do."""


class ListenerTls:
    """The contexts of one listener: of its clients' connections, and of a broker's to other brokers' listener.

    They are replaced, never changed: a connection keeps what it began with. Raises `TlsError`. `look` is for any
    thread, one at a time; `server` and `client` for all.
    """

    def __init__(self, listener: str, settings: TlsSettings, now: datetime) -> None:
        self._listener = listener
        self.settings = settings
        self._seen = _versions(settings)
        self.server, self.client, certificate = _contexts(settings)
        self._ends = certificate.not_valid_after_utc
        if self._ends <= now:
            logger.warning("Listener %s: %s. Clients refuse it.", listener, _expired(settings, certificate))

    def look(self, now: datetime) -> bool:
        """Read the files again if they have changed; whether what they hold is in force.

        Files that are broken, or whose certificate has expired while the one in use has not, change nothing; the
        log says so once.
        """
        versions = _versions(self.settings)
        if versions == self._seen:
            return False
        self._seen = versions
        try:
            server, client, certificate = _contexts(self.settings)
            if certificate.not_valid_after_utc <= now < self._ends:
                raise TlsError(_expired(self.settings, certificate))
        except TlsError as e:
            logger.error("Listener %s: its new files are not used, those of before are. %s", self._listener, e)
            return False
        self.server, self.client, self._ends = server, client, certificate.not_valid_after_utc
        logger.info(
            "Listener %s: new connections get the certificate of %s, which is valid until %s.",
            self._listener,
            rfc_2253(certificate.subject),
            self._ends.isoformat(),
        )
        return True


def _versions(settings: TlsSettings) -> list[tuple[int, int, int] | None]:
    """What tells whether the files have changed."""
    places = ((_KEYSTORE, settings.keystore), (_TRUSTSTORE, settings.truststore))
    return [_version(file) for key, path in places if path for file in _files(path, key)]


def _files(path: str, key: str) -> list[str]:
    """The files of a store at `path`: that one, or where it is a folder, its certificates and its key."""
    return [os.path.join(path, name) for name in _IN_FOLDER[key]] if os.path.isdir(path) else [path]


def _version(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _contexts(settings: TlsSettings) -> tuple[ssl.SSLContext, ssl.SSLContext, Certificate]:
    """The contexts of a server and of a client, and the server's certificate. Raises `TlsError`."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    certificate = _certificate(settings)
    versions = [VERSIONS[name] for name in settings.protocols]
    for context in (server, client):
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        _load_keystore(context, settings)
        _load_truststore(context, settings)
        # As Java has it: what the truststore holds is trusted, be it an authority between others.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.check_hostname = settings.checks_host
    server.verify_mode = _VERIFY[settings.client_auth]
    if settings.client_auth is not ClientAuth.NONE:
        # A certificate is checked with every connection: none goes on with what an earlier one has shown.
        server.options |= ssl.OP_NO_TICKET
        server.num_tickets = 0
    return server, client, certificate


def _certificate(settings: TlsSettings) -> Certificate:
    """The listener's own certificate, which is the first one of its file."""
    try:
        return load_pem_x509_certificates(_keystore(settings))[0]
    except ValueError as e:
        raise TlsError(
            f"{_KEYSTORE}: {_named(settings)} has no certificate that can be read: {e}. Put the certificate"
            " and its private key into it, as PEM."
        ) from e


def _load_keystore(context: ssl.SSLContext, settings: TlsSettings) -> None:
    pem, named = _keystore(settings), _named(settings)
    with _as_file(pem) as path:
        try:
            # Without a password OpenSSL would ask for one at the terminal.
            context.load_cert_chain(path, password=lambda: settings.key_password or "")
        except ssl.SSLError as e:
            if e.reason == "KEY_VALUES_MISMATCH":
                why = "its private key is not the certificate's. Put the two that belong together into it."
            elif b"ENCRYPTED" in pem:
                why = "its private key can't be decrypted. Give its password as ssl.key.password."
            else:
                why = f"it has no private key that can be read ({e.reason}). Put the certificate and its key into it."
            raise TlsError(f"{_KEYSTORE}: {named}: {why}") from e


@contextmanager
def _as_file(pem: bytes) -> Iterator[str]:
    """A file with these bytes: `ssl` reads keys from files only. It is in memory where the system has such files."""
    file: IO[bytes]
    if hasattr(os, "memfd_create"):
        file = open(os.memfd_create("tidelog"), "w+b")  # noqa: SIM115 - closed below
        path = f"/proc/self/fd/{file.fileno()}"
    else:
        file = tempfile.NamedTemporaryFile(prefix="tidelog-")  # noqa: SIM115 - as above; its owner's alone
        path = file.name
    with file:
        file.write(pem)
        file.flush()
        yield path


def _load_truststore(context: ssl.SSLContext, settings: TlsSettings) -> None:
    path, pem = settings.truststore, (settings.truststore_pem or "").encode()
    if path is not None:
        pem = _pem(path, _TRUSTSTORE, settings.truststore_password)
    elif not pem:
        context.load_default_certs(
            ssl.Purpose.CLIENT_AUTH if context.protocol is ssl.PROTOCOL_TLS_SERVER else ssl.Purpose.SERVER_AUTH
        )
        return
    try:
        context.load_verify_locations(cadata=pem.decode("ascii", "replace"))
    except ssl.SSLError as e:
        raise TlsError(
            f"{_TRUSTSTORE}: {path or 'ssl.truststore.certificates'} has no certificate that can be read ({e.reason})."
            " Put the authorities' certificates into it, as PEM."
        ) from e


def _keystore(settings: TlsSettings) -> bytes:
    """The certificates and the key, as PEM. Raises `TlsError`."""
    if settings.keystore_pem is not None:
        return settings.keystore_pem.encode()
    return _pem(settings.keystore, _KEYSTORE, settings.keystore_password, settings.key_password)


def _named(settings: TlsSettings) -> str:
    return settings.keystore or "ssl.keystore.certificate.chain"


def _pem(path: str, key: str, password: str | None, key_password: str | None = None) -> bytes:
    """A file, or a folder's files, as PEM. Raises `TlsError` where one can't be read."""
    try:
        data = b"\n".join(Path(file).read_bytes() for file in _files(path, key))
    except OSError as e:
        raise TlsError(f"{key}: {e.filename} can't be read: {e.strerror}.") from e
    if not is_store(data):
        return data
    try:
        return pem_of(data, password or "", key_password)
    except StoreError as e:
        said = "" if password else f" Give its password as {key.rpartition('.')[0]}.password."
        raise TlsError(f"{key}: {path}: {e}{said}") from e


def _expired(settings: TlsSettings, certificate: Certificate) -> str:
    ended = certificate.not_valid_after_utc.isoformat()
    return f"the certificate of {_named(settings)} has expired at {ended}"

"""Certificates in a folder, as Kubernetes lays a secret of TLS: files behind links that change all at once."""

import os
from datetime import UTC, datetime

import pytest
from support.certificates import DAY, Authority

from tidelog.server.base.listener_settings import ClientAuth, TlsSettings
from tidelog.server.base.tls import ListenerTls, TlsError

NOW = datetime.now(UTC)


def lay(folder, version, pem, authority):
    """A new version of a secret: its files are in a folder of their own, and one link is replaced."""
    files = folder / f"..{version}"
    files.mkdir(parents=True)
    key, mark, certificate = pem.read_text().partition("-----BEGIN CERTIFICATE-----")
    (files / "tls.key").write_text(key)
    (files / "tls.crt").write_text(mark + certificate)
    (files / "ca.crt").write_text(authority.path.read_text())
    (folder / "..new").symlink_to(files.name)
    os.replace(folder / "..new", folder / "..data")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def settings(tmp_path, authority):
    folder = tmp_path / "secret"
    lay(folder, 1, authority.issue("first.pem"), authority)
    return TlsSettings(str(folder), truststore=str(folder), client_auth=ClientAuth.REQUIRED)


def test_a_secret_that_is_replaced_counts_at_the_next_look(tmp_path, authority, settings):
    tls = ListenerTls("SECURE", settings, NOW)
    assert tls.server.get_ca_certs()[0]["subject"] == ((("commonName", "authority"),),)
    assert not tls.look(NOW)
    before = tls.server
    lay(tmp_path / "secret", 2, authority.issue("second.pem", lasts=2 * DAY), authority)
    assert tls.look(NOW)
    assert tls.server is not before
    assert not tls.look(NOW)


def test_a_folder_without_a_key_is_refused_by_the_files_name(tmp_path, settings):
    (tmp_path / "secret/tls.key").unlink()
    with pytest.raises(TlsError, match=r"ssl.keystore.location: .*/secret/tls.key can't be read: No such file"):
        ListenerTls("SECURE", settings, NOW)

"""No secret is in a log, an error, a metric, a process list or a row: all of them are searched for planted ones.

Rows keep SCRAM's salts and keys, and the server's secret: what else a broker checks log-ins by.
"""

import base64
import hashlib
import json
import re
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from joserfc import jwt
from joserfc.jwk import ECKey
from support.broker_processes import broker_command
from support.certificates import Authority
from support.waiting import eventually

from tidelog.access.access_log import AccessLog
from tidelog.log.lake import Lake


class Planted:
    """Secrets by what they are. Each is long enough never to be there by chance."""

    def __init__(self) -> None:
        self.by_name: dict[str, bytes] = {}

    def new(self, what: str) -> str:
        """A password."""
        return self.add(what, f"pw-{secrets.token_hex(12)}")

    def add(self, what: str, secret: str | bytes) -> str:
        data = secret.encode() if isinstance(secret, str) else secret
        assert len(data) >= 16
        self.by_name[what] = data
        return secret if isinstance(secret, str) else ""

    def found_in(self, data: bytes) -> list[str]:
        """The secrets that are there: as they are, in hexadecimal digits, in base64 and in UTF-16."""
        return [what for what, secret in self.by_name.items() if any(form in data for form in _forms(secret))]


def _forms(secret: bytes) -> Iterator[bytes]:
    yield secret
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    yield base64.b64encode(secret).rstrip(b"=")
    yield base64.urlsafe_b64encode(secret).rstrip(b"=")
    yield secret.decode("latin-1").encode("utf-16-le")
    yield repr(secret)[2:-1].encode()


class Places:
    """What was printed, sent and kept, by where."""

    def __init__(self) -> None:
        self.by_name: dict[str, bytes] = {}

    def add(self, where: str, what: str | bytes) -> None:
        self.by_name[where] = self.by_name.get(where, b"") + (what.encode() if isinstance(what, str) else what)


def rows_of(lake: Path) -> Iterator[tuple[str, bytes]]:
    """All files of a lake: their bytes, and what Parquet packs."""
    for path in sorted(lake.rglob("*")):
        if not path.is_file():
            continue
        where = str(path.relative_to(lake))
        yield where, path.read_bytes()
        if path.suffix == ".parquet":
            yield f"rows of {where}", b"\n".join(_cells(pyarrow.parquet.read_table(path).to_pylist()))


def _cells(value: object) -> Iterator[bytes]:
    if isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _cells(one)
    elif value is not None:
        yield value if isinstance(value, bytes) else str(value).encode()


def command_lines(root: int) -> Iterable[bytes]:
    """Of a process and those that it began."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.name))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        with suppress(OSError):
            yield Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


class World:
    """A lake, its secrets, and the places where they must not be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = folder / "lake"
        self.planted = Planted()
        self.places = Places()
        with Lake(self.lake) as lake:
            lake.create_topic("orders", 1)

    def tidelog(self, *args: str, given: str = "", code: int = 0) -> None:
        """Run a command: what it prints, and its command line, are places."""
        command = [sys.executable, "-m", "tidelog", "--lake", str(self.lake), *args]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if code == 0:
            self.places.add(f"command line of {args}", Path(f"/proc/{process.pid}/cmdline").read_bytes())
        out, err = process.communicate(given.encode(), 120)
        assert process.returncode == code, err.decode()
        self.places.add(f"output of {args[:2]}", out + err)

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        return str(path)

    def leaks(self) -> list[str]:
        """Where which secret is."""
        found = [f"{what} in {where}" for where, data in self.places.by_name.items() for what in self._in(data)]
        return found + [f"{what} in {where}" for where, data in rows_of(self.lake) for what in self._in(data)]

    def _in(self, data: bytes) -> list[str]:
        return self.planted.found_in(data)


def test_planted_secrets_are_nowhere(world):
    planted, places = world.planted, world.places
    alice, bob, carol = planted.new("alice's password"), planted.new("bob's password"), planted.new("carol's password")
    world.tidelog("user", "add", "alice", "--password-file", world.file("alice.pw", alice))
    world.tidelog("user", "add", "bob", "--password-file", "-", "--mechanism", "SCRAM-SHA-256", given=bob)
    refused = world.planted.new("a refused password")
    world.tidelog("user", "add", "dave", "--password-file", "-", given=refused + "\0", code=1)
    world.tidelog("user", "add", "dave", "--password-file", world.file("x.pw", refused), "--iterations", "1", code=1)
    world.tidelog("user", "add", "dave", f"--password={refused}", code=2)
    world.tidelog("--format", "json", "user", "list")
    tokens = Issuer(world)
    config = broker_config(world, tokens)
    given = ("--config", config, "--metrics", "127.0.0.1:0")
    with broker_command(world.lake, *given, start=subprocess.Popen) as command:  # a fork has no command line
        ready = command.ready()
        for line in command_lines(command.process.pid):
            places.add("command lines of brokers", line)
        clients = Clients(world, ready["listener"])
        for mechanism, user, password in (
            ("PLAIN", "alice", alice),
            ("SCRAM-SHA-512", "alice", alice),
            ("SCRAM-SHA-256", "bob", bob),
        ):
            assert clients.logs_in(mechanism, user, password)
        for mechanism in ("PLAIN", "SCRAM-SHA-512"):
            assert not clients.logs_in(mechanism, "alice", planted.new(f"a wrong password by {mechanism}"))
        assert not clients.logs_in("PLAIN", "nobody", bob)
        assert clients.logs_in_by_token(tokens.token("alice"))
        assert not clients.logs_in_by_token(tokens.token("alice", lasts_s=-1000))
        assert not clients.logs_in_by_token(planted.new("no token"))
        change_access(world, clients.settings("SCRAM-SHA-512", "alice", alice), carol)
        assert clients.logs_in("SCRAM-SHA-512", "carol", carol)
        with urllib.request.urlopen(f"http://{ready['metrics']}/metrics") as answer:
            places.add("metrics", answer.read())
        audited = "denied"
        eventually(lambda: any(audited in line for line in command.log), "the audit's line about carol")
    places.add("the broker's log", "\n".join(command.log))
    places.add("the broker's ready line", json.dumps(ready))
    world.tidelog("check")
    assert b"not authenticated" in places.by_name["the broker's log"]
    assert world.leaks() == []
    with Lake(world.lake) as lake:  # the search would find what is there
        access = AccessLog(lake)
        stored = access.look().scram
        access.close()
    planted.add("a key that is kept", next(iter(stored.values())).stored_key)
    assert [leak for leak in world.leaks() if "rows of __access" in leak]


class Issuer:
    """Issues tokens."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._key = ECKey.generate_key("P-256", {"kid": "k1"})
        private = self._key.as_dict(private=True)["d"]
        world.planted.add("the issuer's private key", private)
        keys = {"keys": [{**self._key.as_dict(private=False), "use": "sig", "alg": "ES256"}]}
        self.jwks = Path(world.file("jwks.json", json.dumps(keys))).as_uri()

    def token(self, user: str, lasts_s: int = 600) -> str:
        now_s = int(time.time())
        claims = {"sub": user, "iss": "https://id.example", "aud": "kafka", "iat": now_s - 5, "exp": now_s + lasts_s}
        token = jwt.encode({"alg": "ES256", "kid": "k1"}, claims, self._key)
        self._world.planted.add(f"a token for {lasts_s} s", token)
        self._world.planted.add(f"the signature of a token for {lasts_s} s", token.rpartition(".")[2])
        return token


def broker_config(world: World, tokens: Issuer) -> str:
    password = world.planted.new("the password of the private key")
    authority = Authority(world.folder)
    pem = authority.issue("broker.pem", password=password)
    body = re.search(r"BEGIN ENCRYPTED PRIVATE KEY-----\n(.*?)\n", pem.read_text())
    world.planted.add("the private key", body[1])
    wrong = world.planted.new("a wrong password of the private key")
    text = f"""
listeners=CLIENTS://127.0.0.1:0
listener.security.protocol.map=CLIENTS:SASL_SSL
ssl.keystore.location={pem}
ssl.truststore.location={authority.path}
ssl.key.password={{password}}
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
sasl.oauthbearer.jwks.endpoint.url={tokens.jwks}
sasl.oauthbearer.expected.issuer=https://id.example
sasl.oauthbearer.expected.audience=kafka
super.users=User:alice
audit.topic=audit
"""
    bad = world.file("bad.properties", text.format(password=wrong))
    with broker_command(world.lake, "--config", bad) as command:
        assert command.ended() != 0
    world.places.add("the log of a broker without its key", "\n".join(command.log))
    nameless = world.file("nameless.properties", text.format(password=password) + f"ssl.key.pasword={wrong}\n")
    with broker_command(world.lake, "--config", nameless) as command:
        assert command.ended() != 0
    world.places.add("the log of a broker with a wrong setting", "\n".join(command.log))
    return world.file("broker.properties", text.format(password=password))


class Clients:
    """Clients of the broker. What they say of errors is a place."""

    def __init__(self, world: World, address: str) -> None:
        self._world = world
        self._base = {
            "bootstrap.servers": address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(world.folder / "authority.pem"),
            "socket.timeout.ms": 10_000,
        }

    def settings(self, mechanism: str, user: str, password: str) -> dict[str, object]:
        return {**self._base, "sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}

    def logs_in(self, mechanism: str, user: str, password: str) -> bool:
        return self._is_let_in(self.settings(mechanism, user, password))

    def logs_in_by_token(self, token: str) -> bool:
        given = {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: (token, time.time() + 600)}
        return self._is_let_in({**self._base, **given})

    def _is_let_in(self, settings: dict[str, object]) -> bool:
        errors = []
        producer = Producer({**settings, "error_cb": errors.append, "logger": _Quiet()})
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s:
            with suppress(KafkaException):
                producer.list_topics(timeout=1)
                return True
            producer.poll(0)
            if any("uthentication" in error.str() for error in errors):
                break
        self._world.places.add("errors of clients", "\n".join(error.str() for error in errors))
        assert errors, "neither let in nor refused"
        return False


class _Quiet:
    def log(self, *_: object) -> None:
        """Nothing is shown."""


def change_access(world: World, settings: dict[str, object], password: str) -> None:
    """A user by the protocol, as kafka-configs.sh makes it; an ACL; and a denial."""
    admin = AdminClient({**settings, "logger": _Quiet()})
    salt = secrets.token_bytes(16)
    made = UserScramCredentialUpsertion(
        "carol", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), password.encode(), salt
    )
    for future in admin.alter_user_scram_credentials([made]).values():
        future.result(60)
    world.planted.add("carol's salted password", hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 4096))
    acl = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:carol",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([acl]).values():
        future.result(60)
    errors = []
    producer = Producer({**settings, "sasl.username": "carol", "sasl.password": password, "logger": _Quiet()})
    producer.produce("orders", b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(60)
    assert errors[0] is not None
    world.places.add("errors of clients", errors[0].str())

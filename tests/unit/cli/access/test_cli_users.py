"""`tidelog user`: passwords come by a file or standard input, and are never seen again."""

import pytest
from support.cli_calls import answer, cli, done, lake_address, open_lake, refused

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, is_password
from tidelog.access.state import AccessState, Tenant

PASSWORD = "planted pa55 wörd"
SHA_256, SHA_512 = ScramMechanism


@pytest.fixture
def lake() -> str:
    address = lake_address()
    open_lake(address)
    return address


@pytest.fixture
def file(tmp_path) -> str:
    path = tmp_path / "password.txt"
    path.write_text(f"{PASSWORD}\n", encoding="utf-8")
    return str(path)


def state(lake: str) -> AccessState:
    with open_lake(lake) as opened:
        return AccessLog(opened).look()


def test_a_password_of_a_file(lake, file):
    result = done("user", "add", "alice", "--password-file", file, "--lake", lake)
    assert result.stdout == "User alice authenticates by SCRAM-SHA-512, or PLAIN.\n"
    assert PASSWORD not in result.output
    [(key, known)] = state(lake).scram.items()
    assert key == ("alice", SHA_512)
    assert is_password(known, PASSWORD)
    assert not is_password(known, f"{PASSWORD}\n")
    assert (len(known.salt), known.iterations) == (16, 4096)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_password_of_standard_input(lake, end):
    given = f"{PASSWORD}{end}".encode()
    options = ["--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512", "--iterations", "8192"]
    done("user", "add", "bo", "--password-file", "-", *options, "--lake", lake, stdin=given)
    known = state(lake).scram
    assert set(known) == {("bo", SHA_256), ("bo", SHA_512)}
    assert all(is_password(one, PASSWORD) and one.iterations == 8192 for one in known.values())
    assert len({one.salt for one in known.values()}) == 2


@pytest.mark.parametrize("words", [["--password", PASSWORD], [f"--password={PASSWORD}"], [PASSWORD]])
def test_a_password_on_the_command_line_is_refused_and_not_repeated(lake, file, words):
    said = refused(2, "user", "add", "alice", *words, "--password-file", file, "--lake", lake)
    assert "A password is not given on the command line" in said
    assert "Take another one now" in said
    assert "pa55" not in said
    assert not state(lake).scram


@pytest.mark.parametrize(
    ("given", "code", "why"),
    [
        (b"", 1, "at least one character"),
        (b"\n", 1, "at least one character"),
        (b"one\ntwo\n", 2, "one line"),
        (b"x" * 5000, 2, "at most 1024"),
        (b"\xff\xfe", 2, "no text in UTF-8"),
        ("sec\u0007ret".encode(), 1, "SASL does not permit"),
    ],
)
def test_what_is_no_password(lake, tmp_path, given, code, why):
    path = tmp_path / "password.txt"
    path.write_bytes(given)
    said = refused(code, "user", "add", "alice", "--password-file", str(path), "--lake", lake)
    assert why in said
    assert "sec" not in said.replace("second", "")
    assert not state(lake).scram


def test_a_user_without_a_password_is_refused(lake, tmp_path):
    assert "Give --password-file" in refused(2, "user", "add", "alice", "--lake", lake)
    missing = str(tmp_path / "missing")
    assert "No such file" in refused(1, "user", "add", "alice", "--password-file", missing, "--lake", lake)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["__broker"], "brokers ask each other"),
        (["alice", "--iterations", "4095"], "4096 to 16384"),
        (["alice", "--mechanism", "PLAIN"], "'PLAIN' is no mechanism of passwords"),
    ],
)
def test_users_that_can_not_be(lake, file, words, why):
    assert why in refused(1 + ("PLAIN" in words), "user", "add", *words, "--password-file", file, "--lake", lake)


def test_users_are_listed(lake, file):
    assert done("user", "list", "--lake", lake).stdout == ""
    for name in ("bo", "alice"):
        done("user", "add", name, "--password-file", file, "--lake", lake)
    done("user", "add", "bo", "--mechanism", "SCRAM-SHA-256", "--password-file", file, "--lake", lake)
    with open_lake(lake) as opened:
        AccessLog(opened).create_tenant(Tenant("sales", "sales.", ("bo",)))
    assert done("user", "list", "--lake", lake).stdout == "alice\nbo\n"
    sha_256, sha_512 = ({"mechanism": one.value, "iterations": 4096} for one in ScramMechanism)
    assert answer("user", "list", "--lake", lake) == [
        {"user": "alice", "mechanisms": [sha_512], "tenant": None},
        {"user": "bo", "mechanisms": [sha_256, sha_512], "tenant": "sales"},
    ]
    table = cli("user", "list", "--lake", lake, env={"FORCE_COLOR": "1", "COLUMNS": "120"}).stdout
    assert "SCRAM-SHA-256, SCRAM-SHA-512" in table


def test_users_are_removed(lake, file):
    both = ["--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512"]
    done("user", "add", "alice", *both, "--password-file", file, "--lake", lake)
    done("acl", "add", "--principal", "alice", "--topic", "t", "--lake", lake)
    assert answer("user", "remove", "alice", "--mechanism", "SCRAM-SHA-256", "--lake", lake) == {
        "user": "alice",
        "removed": ["SCRAM-SHA-256"],
    }
    assert "no credential of SCRAM-SHA-256" in refused(
        1, "user", "remove", "alice", "--mechanism", "SCRAM-SHA-256", "--lake", lake
    )
    result = done("user", "remove", "alice", "--lake", lake)
    assert result.stdout == "Removed SCRAM-SHA-512 of user alice.\n"
    assert "1 ACLs of User:alice stay" in result.stderr
    assert "There is no user 'alice'" in refused(1, "user", "remove", "alice", "--lake", lake)
    assert not state(lake).scram

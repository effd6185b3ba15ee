"""`tidelog forget`: which keys are meant, what is said, and the exit codes."""

import json
from pathlib import Path

import pytest
from support.cli_calls import cli, done, lake_address, refused

from tidelog.commands.failures import STILL_WAITING
from tidelog.commands.forget_options import ForgetOptions, KeyEncoding


def lake_of(*keys: str) -> str:
    address = lake_address()
    done("--lake", address, "topic", "create", "t", "--partitions", "1")
    lines = "\n".join(f"{key}:{i}" for i, key in enumerate(keys))
    done("--lake", address, "produce", "t", "-K", ":", stdin=lines)
    return address


def consumed(address: str) -> str:
    return done("--lake", address, "consume", "t", "-e", "-f", r"%o:%k=%s\n").stdout


def test_the_records_leave_and_files_wait() -> None:
    address = lake_of("a", "b", "a")
    result = cli("forget", "--lake", address, "--topic", "t", "--key", "a", "--format", "json")
    assert result.exit_code == STILL_WAITING
    report = json.loads(result.stdout)
    (topic,) = report["topics"]
    assert (topic["topic"], topic["keys"], topic["records"], report["done"]) == ("t", 1, 2, False)
    assert [w["path"] for w in topic["waiting"]] == [r["path"] for r in topic["rewritten"]]
    assert topic["waiting"][0]["until_ms"] > 0
    assert consumed(address) == "1:b=1\n"


def test_in_words() -> None:
    address = lake_of("a", "b")
    dry = done("forget", "--lake", address, "--topic", "t", "--key", "a", "--dry-run").stdout
    assert "t: 1 record would leave, of 1 file." in dry
    assert consumed(address) == "0:a=0\n1:b=1\n"
    result = cli("forget", "--lake", address, "--topic", "t", "--key", "a")
    assert result.exit_code == STILL_WAITING
    assert "t: 1 record left, of 1 file; deleted from storage: 0 files, waiting: 1." in result.stdout
    assert "waits: time travel (log.min.age.ms)" in result.stdout
    assert "--wait" in result.stdout


def test_nothing_to_forget_is_done() -> None:
    assert "0 records left" in done("forget", "--lake", lake_of("a"), "--topic", "t", "--key", "c").stdout


def test_refused() -> None:
    address = lake_of("a")
    assert "No key is given" in refused(2, "forget", "--lake", address, "--topic", "t")
    assert "does not exist" in refused(1, "forget", "--lake", address, "--topic", "x", "--key", "a")
    assert "does not exist" in refused(1, "forget", "--lake", address, "--topic", "t", "--topic", "x", "--key", "a")
    assert "'a' is not hex" in refused(
        2, "forget", "--lake", address, "--topic", "t", "--key", "a", "--key-encoding", "hex"
    )
    assert "No such file" in refused(1, "forget", "--lake", address, "--topic", "t", "--key-file", "/nothing/there")
    assert consumed(address) == "0:a=0\n"


@pytest.mark.parametrize(
    ("encoding", "key", "line"),
    [
        ("text", "ü", "ü".encode()),
        ("hex", "00ff", b"00FF"),
        ("base64", "AP8=", b"AP8="),
    ],
)
def test_keys(encoding: KeyEncoding, key: str, line: bytes, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes(line + b"\r\n\n" + line)
    expected = "ü".encode() if encoding == "text" else b"\x00\xff"
    given = ForgetOptions(topics=["t"], keys=[key], key_encoding=encoding)
    assert given.key_bytes() == {expected}
    assert ForgetOptions(topics=["t"], key_file=str(file), key_encoding=encoding).key_bytes() == {expected}


def test_keys_of_a_file_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b" a \n\xff\n")
    assert ForgetOptions(topics=["t"], key_file=str(tmp_path / "keys")).key_bytes() == {b" a ", b"\xff"}
    address = lake_of("a", "b")
    report = json.loads(
        cli("forget", "--lake", address, "--topic", "t", "--key-file", "-", "--format", "json", stdin="a\nb\n").stdout
    )
    assert report["topics"][0]["records"] == 2

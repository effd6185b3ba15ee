"""Spark's JVM starts from an archive of classes where there is one that fits this Java and this Spark."""

from pathlib import Path
from unittest.mock import MagicMock

import pyspark
import pytest

from tidelog.spark import class_archive
from tidelog.spark.class_archive import archive, with_archive, write_archive

OPTIONS = "-XX:+UseSerialGC"


@pytest.fixture
def java(tmp_path: Path) -> Path:
    program = tmp_path / "jdk/bin/java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_each_java_and_each_spark_has_one_of_its_own(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_home = archive(tmp_path, {"JAVA_HOME": str(java.parents[1])})
    by_path = archive(tmp_path, {"PATH": str(java.parent)})
    assert by_path is not None
    assert by_home == by_path
    java.unlink()
    java.write_text("#!/bin/sh\n# another one\n")
    java.chmod(0o755)
    another = archive(tmp_path, {"PATH": str(java.parent)})
    monkeypatch.setattr(pyspark, "__version__", "99")
    assert len({by_path, another, archive(tmp_path, {"PATH": str(java.parent)})}) == 3


def test_without_a_java_there_is_none(tmp_path: Path) -> None:
    assert archive(tmp_path, {"PATH": str(tmp_path)}) is None
    assert archive(tmp_path, {"JAVA_HOME": str(tmp_path)}) is None


def test_a_jvm_takes_one_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "spark.jsa"
    assert with_archive(OPTIONS, path) == OPTIONS
    path.write_bytes(b"")
    assert with_archive(OPTIONS, path).startswith(f"{OPTIONS} -XX:SharedArchiveFile={path} -Xshare:auto ")


def test_options_hold_no_path_with_a_space(tmp_path: Path) -> None:
    """Spark splits them at spaces."""
    path = tmp_path / "my spark.jsa"
    path.write_bytes(b"")
    assert with_archive(OPTIONS, path) == OPTIONS


def test_an_archive_is_there_once_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that is stopped leaves half of one, and set-up, started again, takes it for none."""
    whole = tmp_path / "spark.jsa"
    monkeypatch.setattr(class_archive, "archive", lambda: whole)
    spark = MagicMock()
    monkeypatch.setattr(class_archive, "session", spark)
    jvm = spark.return_value.sparkContext._gateway.proc

    def writes(*ends: BaseException) -> None:
        options = spark.call_args.args[2]["spark.driver.extraJavaOptions"]
        Path(options.partition("-XX:ArchiveClassesAtExit=")[2].split()[0]).write_bytes(b"half" if ends else b"whole")
        for end in ends:
            raise end

    jvm.wait.side_effect = lambda: writes(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        write_archive()
    assert not whole.exists()
    jvm.wait.side_effect = writes
    assert write_archive()
    assert whole.read_bytes() == b"whole"
    assert not write_archive()

"""Spark's JVM starts from an archive of classes where there is one that fits this Java and this Spark."""

from pathlib import Path

import pyspark
import pytest

from tidelog.spark.class_archive import archive, with_archive

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

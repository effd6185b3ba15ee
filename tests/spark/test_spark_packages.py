"""Jars for a session: from a repository once, and from Ivy's folder after that."""

import logging
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidelog.log.base.errors import MissingJarsError
from tidelog.spark.jars import add_packages, delta_is_there, delta_package, fetch

SETTINGS = """
<ivysettings>
  <settings defaultResolver="mirror"/>
  <resolvers><ibiblio name="mirror" m2compatible="true" root="file:{folder}/"/></resolvers>
</ivysettings>
"""
POM = """
<project><modelVersion>4.0.0</modelVersion>
<groupId>org.acme</groupId><artifactId>widgets</artifactId><version>1.0</version></project>
"""


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """Spark's settings for a mirror that has one package, org.acme:widgets:1.0, and a folder of jars of its own."""
    folder = tmp_path / "mirror" / "org" / "acme" / "widgets" / "1.0"
    folder.mkdir(parents=True)
    (folder / "widgets-1.0.pom").write_text(POM)
    with zipfile.ZipFile(folder / "widgets-1.0.jar", "w") as jar:
        jar.writestr("org/acme/widget.txt", "a widget")
    (tmp_path / "ivysettings.xml").write_text(SETTINGS.format(folder=tmp_path / "mirror"))
    return {"spark.jars.ivySettings": str(tmp_path / "ivysettings.xml"), "spark.jars.ivy": str(tmp_path / "ivy")}


def test_a_package_is_fetched_once_with_one_line_and_then_found_without_the_repository(
    spark: SparkSession,
    settings: dict[str, str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    spark_log: Path,
) -> None:
    before = spark_log.stat().st_size
    with caplog.at_level(logging.INFO, "tidelog.spark"):
        first = fetch(spark._jvm, ["org.acme:widgets:1.0"], settings)
        told = [record.getMessage() for record in caplog.records]
        (tmp_path / "mirror").rename(tmp_path / "unplugged")
        again = add_packages(spark._jvm, ["org.acme:widgets:1.0"], settings)

    assert told == [
        f"Fetching org.acme:widgets:1.0 from {settings['spark.jars.ivySettings']} into {tmp_path}/ivy/jars, once for"
        " this machine."
    ]
    assert len(caplog.records) == 1
    assert first == again == [f"{tmp_path}/ivy/jars/org.acme_widgets-1.0.jar"]
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    assert loader.getResource("org/acme/widget.txt") is not None
    assert capfd.readouterr() == ("", "")
    assert spark_log.stat().st_size == before


def test_a_package_that_nobody_has_is_refused_with_what_to_do(spark: SparkSession, settings: dict[str, str]) -> None:
    with pytest.raises(MissingJarsError) as refused:
        fetch(spark._jvm, ["org.acme:nothing:2.0"], settings)
    said = str(refused.value)
    assert said.startswith("Spark has no org.acme:nothing:2.0, and could not fetch it: [unresolved dependency: ")
    assert "spark-submit --packages org.acme:nothing:2.0" in said


def test_the_session_has_delta_and_its_start_was_quiet(spark: SparkSession, spark_log: Path) -> None:
    assert delta_is_there(spark._jvm)
    jars = spark.sparkContext.getConf().get("spark.jars", "")
    group, artifact, release = delta_package().split(":")
    assert f"{group}_{artifact}-{release}.jar" in jars
    assert "hadoop-client" not in jars  # Spark brings it
    assert ":: " not in spark_log.read_text()

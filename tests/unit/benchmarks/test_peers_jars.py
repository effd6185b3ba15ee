"""Side by side: the jars of Kafka and of Spark's connector are fetched once, and again when they are not whole."""

import os
import stat
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import jars
import pytest
from jars import BROKER, CONNECTOR, ClassPath, FetchError, fetched

FEW = ClassPath("few", ("org.example:one:1.0",), transitive=False)


@pytest.fixture
def resolver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that retrieves one jar, as Ivy would, and counts its runs in the file; it fails beside `refuse`."""
    home, runs = tmp_path / "java", tmp_path / "runs"
    (home / "bin").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "one.jar", "w") as jar:
        jar.writestr("a", "b")
    program = home / "bin" / "java"
    program.write_text(
        f"#!/bin/sh\necho run >>{runs}\n"
        f"if [ -e {tmp_path}/refuse ]; then echo ':: org.example#one;1.0: not found'; exit 1; fi\n"
        'while [ "$1" != -retrieve ]; do shift; done\n'
        f'cp {tmp_path}/one.jar "$(dirname "$2")/one-1.0.jar"\n',
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(home))
    runs.touch()
    return runs


def runs(resolver: Path) -> int:
    return len(resolver.read_text(encoding="utf-8").splitlines())


def test_jars_are_fetched_once(resolver: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert [jar.name for jar in fetched(FEW, store)] == ["one-1.0.jar"]
    assert fetched(FEW, store) == fetched(FEW, store) == [store / "few" / "one-1.0.jar"]
    assert runs(resolver) == 1
    assert [path.name for path in store.iterdir()] == ["few"]


def truncate(folder: Path) -> None:
    os.truncate(folder / "one-1.0.jar", 10)


def remove(folder: Path) -> None:
    (folder / "one-1.0.jar").unlink()


def forget(folder: Path) -> None:
    (folder / "complete").unlink()


def other_version(folder: Path) -> None:
    text = (folder / "complete").read_text(encoding="utf-8")
    (folder / "complete").write_text(text.replace("one:1.0", "one:0.9"), encoding="utf-8")


@pytest.mark.parametrize("damage", [truncate, remove, forget, other_version])
def test_what_is_not_whole_is_fetched_anew(damage, resolver: Path, tmp_path: Path) -> None:
    (jar,) = fetched(FEW, tmp_path / "store")
    damage(jar.parent)
    assert fetched(FEW, tmp_path / "store") == [jar]
    assert zipfile.is_zipfile(jar)
    assert runs(resolver) == 2


def test_a_failed_fetch_says_why_and_what_to_do_and_goes_on_the_next_time(resolver: Path, tmp_path: Path) -> None:
    (tmp_path / "refuse").touch()
    with pytest.raises(FetchError, match=r"(?s)org\.example:one:1\.0 .*#one;1\.0: not found.*IVY_SETTINGS"):
        fetched(FEW, tmp_path / "store")
    (tmp_path / "refuse").unlink()
    assert len(fetched(FEW, tmp_path / "store")) == 1


def test_what_is_no_jar_is_refused(resolver: Path, tmp_path: Path) -> None:
    (tmp_path / "one.jar").write_text("<html>Please log in</html>", encoding="utf-8")
    with pytest.raises(FetchError, match=r"no jar: \['one-1\.0\.jar'\]"):
        fetched(FEW, tmp_path / "store")


def test_without_java_there_is_nothing_to_fetch_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(FetchError, match="Java 17"):
        fetched(FEW, tmp_path / "store")


def dependencies(path: ClassPath) -> list[dict[str, str]]:
    return [found.attrib for found in ET.fromstring(jars.module(path)).iter("dependency")]


def test_the_broker_comes_with_all_it_needs() -> None:
    assert [(found["name"], found["rev"]) for found in dependencies(BROKER)][:2] == [
        ("kafka_2.13", jars.KAFKA),
        ("kafka-tools", jars.KAFKA),
    ]
    assert {found["transitive"] for found in dependencies(BROKER)} == {"true"}


def test_the_connector_comes_with_the_token_provider_that_is_to_be_had() -> None:
    found = {one["name"]: (one["rev"], one["transitive"]) for one in dependencies(CONNECTOR)}
    assert found == {
        "spark-sql-kafka-0-10_2.13": ("4.2.0", "false"),
        "spark-token-provider-kafka-0-10_2.13": ("4.0.0", "false"),
        "kafka-clients": (jars.CONNECTOR_CLIENTS, "false"),
        "commons-pool2": ("2.13.1", "false"),
    }

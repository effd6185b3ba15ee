"""Kafka's broker and Spark's Kafka connector, fetched by their Maven coordinates with the resolver Spark brings (Ivy).

The two are class paths of their own: the broker is of a newer Kafka than the clients of the connector.
"""

import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pyspark

# Beside the packages in .venv: what fetched once stays when `build` is made again.
STORE = Path(__file__).resolve().parents[2] / ".venv" / "peers"
KAFKA, CONNECTOR_CLIENTS = "4.1.2", "3.9.2"
_DONE = "complete"
_LIMIT_S = 600
_ADVICE = (
    "Maven's central repository must be within reach once; what is fetched is kept. Where a mirror stands for it, name "
    "an ivysettings.xml that says so in IVY_SETTINGS. Then run this again."
)


@dataclass(frozen=True)
class ClassPath:
    """Artifacts (`group:artifact:version`) and, with `transitive`, all that they need."""

    name: str
    artifacts: tuple[str, ...]
    transitive: bool


def broker(name: str, kafka: str) -> ClassPath:
    """A broker of this version of Kafka, and its tools."""
    own = (f"org.apache.kafka:{artifact}:{kafka}" for artifact in ("kafka_2.13", "kafka-tools"))
    return ClassPath(name, (*own, "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3"), transitive=True)


BROKER = broker("broker", KAFKA)
STREAMS = ClassPath(
    "streams",
    (f"org.apache.kafka:kafka-streams:{KAFKA}", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3"),
    transitive=True,
)
# The connector's other needs are in Spark itself. Its token provider of the same version is not to be had everywhere.
CONNECTOR = ClassPath(
    "connector",
    (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        f"org.apache.kafka:kafka-clients:{CONNECTOR_CLIENTS}",
        "org.apache.commons:commons-pool2:2.13.1",
    ),
    transitive=False,
)


class FetchError(Exception):
    """The jars are not here and could not be fetched."""


def fetched(path: ClassPath, store: Path = STORE) -> list[Path]:
    """The jars of a class path, fetched when they are not here whole; FetchError says what to do when that fails."""
    folder = store / path.name
    found = _whole(path, folder)
    if found is None:
        _fetch(path, folder)
        found = _whole(path, folder)
    if found is None:
        raise FetchError(
            f"The jars of {path.name} in {folder} are not whole right after fetching them: is the disk full?"
        )
    return found


def java() -> str:
    """Java as Spark finds it."""
    return f"{os.environ['JAVA_HOME']}/bin/java" if os.environ.get("JAVA_HOME") else "java"


def module(path: ClassPath) -> str:
    """The class path for Ivy (an ivy.xml)."""
    lines = []
    for artifact in path.artifacts:
        group, name, version = artifact.split(":")
        lines.append(
            f"  <dependency org={quoteattr(group)} name={quoteattr(name)} rev={quoteattr(version)}"
            f' conf="default->default" transitive="{str(path.transitive).lower()}"/>'
        )
    return "\n".join(
        (
            '<ivy-module version="2.0">',
            f' <info organisation="tidelog" module={quoteattr(path.name)}/>',
            ' <configurations><conf name="default"/></configurations>',
            " <dependencies>",
            *lines,
            " </dependencies>",
            "</ivy-module>\n",
        )
    )


def _whole(path: ClassPath, folder: Path) -> list[Path] | None:
    """The jars that the folder's list names, or None when they were fetched for other artifacts or one is damaged."""
    try:
        wanted, *names = (folder / _DONE).read_text(encoding="utf-8").splitlines()
        sizes = {name: int(size) for size, _, name in (line.partition(" ") for line in names)}
        if wanted != _wanted(path) or not sizes:
            return None
        if any((folder / name).stat().st_size != size for name, size in sizes.items()):
            return None
    except (OSError, ValueError):
        return None
    return [folder / name for name in sizes]


def _wanted(path: ClassPath) -> str:
    return " ".join((*path.artifacts, f"transitive={path.transitive}"))


def _fetch(path: ClassPath, folder: Path) -> None:
    """Fetch into a folder beside it and put that in its place: the folder is never seen half full.

    What a fetch that fails had already got stays in `<name>-cache` for the next, which so begins where it ended.
    """
    cache = folder.with_name(f"{path.name}-cache")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{path.name}-", dir=folder.parent) as scratch:
        fresh = Path(scratch) / "jars"
        fresh.mkdir()
        _resolve(path, Path(scratch), cache, fresh)
        shutil.rmtree(cache, ignore_errors=True)
        found = sorted(fresh.glob("*.jar"))
        broken = [jar.name for jar in found if not zipfile.is_zipfile(jar)]
        if not found or broken:
            raise FetchError(f"What was fetched for the {path.name} is no jar: {broken or 'nothing'}. {_ADVICE}")
        lines = [_wanted(path), *(f"{jar.stat().st_size} {jar.name}" for jar in found)]
        (fresh / _DONE).write_text("\n".join(lines) + "\n", encoding="utf-8")
        if _whole(path, folder) is None:  # else another run was faster
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)


def _resolve(path: ClassPath, scratch: Path, cache: Path, into: Path) -> None:
    described = scratch / "ivy.xml"
    described.write_text(module(path), encoding="utf-8")
    ivy = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not ivy:
        raise FetchError("The installed pyspark has no Ivy among its jars: run make setup.")
    command = [
        *(java(), "-jar", str(ivy[-1]), "-ivy", str(described), "-cache", str(cache)),
        *("-confs", "default", "-types", "jar", "bundle", "-retrieve", f"{into}/[artifact]-[revision].[ext]"),
        *_settings(),
    ]
    print(f"fetching the {path.name}: {', '.join(path.artifacts)} (once, a minute or two) ...", flush=True)
    try:
        run = subprocess.run(
            command, cwd=scratch, capture_output=True, text=True, errors="replace", timeout=_LIMIT_S, check=False
        )
    except OSError as error:
        raise FetchError(f"{command[0]} does not start ({error}): Spark and Kafka need Java 17 or newer.") from error
    except subprocess.TimeoutExpired as error:
        raise FetchError(f"Fetching {path.name} took more than {_LIMIT_S} s and was stopped. {_ADVICE}") from error
    if run.returncode:
        told = "\n".join(_worth_telling(run.stdout.splitlines() + run.stderr.splitlines()))
        raise FetchError(f"{', '.join(path.artifacts)} could not be fetched. Ivy says:\n{told}\n{_ADVICE}")


def _settings() -> Sequence[str]:
    named = os.environ.get("IVY_SETTINGS")
    return ("-settings", named) if named else ()


def _worth_telling(lines: Sequence[str]) -> Sequence[str]:
    told = [line.strip() for line in lines if "not found" in line or "ERROR" in line or "WARN" in line.upper()]
    return (told or [line for line in lines if line.strip()])[-12:]

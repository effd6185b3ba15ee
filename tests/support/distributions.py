"""The wheel and the sdist, and empty environments to install them in."""

import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What `make dist` built; without it a test builds its own.
BUILT = "TIDELOG_DIST"
# What a wheel's reader of records is, and that it reads.
_SAYS = """
import sys
sys.path.insert(0, sys.argv[1])
from tidelog.broker.records import reader
from tidelog.broker.records.batches import check, header_of
from tidelog.broker.records.codec import record_codec
from support.record_batches import built
assert reader.__file__.startswith(sys.argv[1])
records = [(7, b"k", b"v", [("h", b"1")])] * 300
batch = built(records)
check(header_of(batch), batch, topic="t", most_bytes=1 << 20)
columns = record_codec().columns([batch])
print(columns.counts, columns.table["value"][299], type(record_codec()).__name__)
print(reader.READER)
"""
_LIMIT_S = 600
_UV = Path(sys.executable).with_name("uv")


def distributions(folder: Path) -> dict[str, Path]:
    """`{"wheel": path, "sdist": path}`; built into the folder where `make dist` has not built them."""
    if BUILT in os.environ:
        folder = Path(os.environ[BUILT])
    else:
        tree = folder / "tree"
        _copy_tree(tree)
        told = _told_uv()
        by = [] if told is None else ["--installer", "uv"]
        _run([sys.executable, "-m", "build", *by, "--outdir", str(folder), str(tree)], **(told or {}))
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def _copy_tree(to: Path) -> None:
    """What git knows or would add: a build writes beside its sources, where other tests look at this moment."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(None, _run(listed).split("\0")):
        source, copied = ROOT / name, to / name
        if source.is_symlink() or source.exists():
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copied, follow_symlinks=False)


def said_by_the_reader(wheel: Path, folder: Path) -> list[str]:
    """What the product of a wheel says of its reader of records, with the packages of this environment."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    command = [sys.executable, "-c", _SAYS, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class Environment:
    """A virtual environment with one distribution of tidelog in it, and with what that says it needs.

    `by_pip`: installed as people do. Else by uv where `make setup` has left one, which takes a tenth of the time.
    """

    def __init__(self, folder: Path, distribution: Path, extra: str = "", *, by_pip: bool = False) -> None:
        self._folder = folder
        wanted = f"{distribution}[{extra}]" if extra else str(distribution)
        told = None if by_pip else _told_uv()
        if told is not None:
            _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
            _run([str(_UV), "pip", "install", "--quiet", "--python", str(folder / "bin/python"), wanted], **told)
            return
        _run([sys.executable, "-m", "venv", str(folder)])
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", wanted)

    def run(self, program: str, *arguments: str, code: int = 0) -> str:
        """What a program of the environment prints on both outputs. Fails when its exit code is another."""
        return _run([str(self._folder / "bin" / program), *arguments], code, cwd=self._folder)

    def python(self, source: str) -> str:
        """What a program in Python prints; it sees the environment and nothing of this process's."""
        return self.run("python", "-I", "-c", source)


@cache
def _told_uv() -> dict[str, str] | None:
    """pip's configuration as variables for uv, as `make setup` passes it on; None where uv can't be used."""
    if not _UV.exists():
        return None
    configuration = _run([sys.executable, "-m", "pip", "config", "list"])
    told: dict[str, str] | None = runpy.run_path(str(ROOT / ".ci/parts.py"))["uv_environment"](configuration)
    return told


def _run(command: list[str], code: int = 0, cwd: Path | None = None, **more: str) -> str:
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in hidden} | more
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout

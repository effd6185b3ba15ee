"""The wheel and the sdist, and empty environments to install them in."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What `make dist` built; without it a test builds its own.
BUILT = "TIDELOG_DIST"
_LIMIT_S = 600


def distributions(folder: Path) -> dict[str, Path]:
    """`{"wheel": path, "sdist": path}`; built into the folder where `make dist` has not built them."""
    if BUILT in os.environ:
        folder = Path(os.environ[BUILT])
    else:
        _run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)])
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


class Environment:
    """A virtual environment with one distribution of tidelog in it, and with what that says it needs."""

    def __init__(self, folder: Path, distribution: Path, extra: str = "") -> None:
        self._folder = folder
        _run([sys.executable, "-m", "venv", str(folder)])
        wanted = f"{distribution}[{extra}]" if extra else str(distribution)
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", wanted)

    def run(self, program: str, *arguments: str, code: int = 0) -> str:
        """What a program of the environment prints on both outputs. Fails when its exit code is another."""
        return _run([str(self._folder / "bin" / program), *arguments], code, cwd=self._folder)

    def python(self, source: str) -> str:
        """What a program in Python prints; it sees the environment and nothing of this process's."""
        return self.run("python", "-I", "-c", source)


def _run(command: list[str], code: int = 0, cwd: Path | None = None) -> str:
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
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

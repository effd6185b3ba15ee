"""The module `.ci/parts.py`, which is in no package; as a program: runs steps of a test's own, one of which lasts."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_FILE = Path(__file__).parents[2] / ".ci/parts.py"


def load_parts() -> ModuleType:
    """A copy of the module of its own, whose folders a test may replace."""
    spec = importlib.util.spec_from_file_location("setup_parts", _FILE)
    assert spec is not None
    assert spec.loader is not None
    parts = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = parts  # dataclasses look their module up
    spec.loader.exec_module(parts)
    return parts


def in_folder(parts: ModuleType, folder: Path) -> None:
    """Let the module keep its stamps and logs below this folder."""
    parts.ROOT, parts.VENV, parts.LOGS = folder, folder / ".venv", folder / "build/setup"
    parts.VENV.mkdir(exist_ok=True)


def main(folder: Path, lasting: str) -> int:
    """Steps `quick`, and beside it `lasting`, a program that prints its process id; then `last`."""
    parts = load_parts()
    in_folder(parts, folder)

    def of(command: str) -> object:
        return lambda step: parts.run(step, [sys.executable, "-c", command])

    installed = parts.install("demo") if lasting == "install" else of(lasting)
    steps = [
        parts.Step("quick", "quick", 1, of("")),
        parts.Step("lasting", "lasting", 1, installed),
        parts.Step("last", "last", 1, of(""), after=("quick", "lasting")),
    ]
    parts.steps_of = lambda _: steps
    parts.check_java = parts.check_maven = lambda *_: None
    (folder / "pyproject.toml").write_text('"delta-spark==1"')
    return int(parts.main(["demo"]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))

"""Pages that start Spark, run one after another in one process: one JVM has their sessions, each of which ends.

As a program: `python -m support.pages_in_turn '[["README.md", "/folder"]]'`.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from support.pages import clone, run_blocks, with_support


def run_in_turn(pages: Mapping[str, Path], environment: Mapping[str, str]) -> dict[str, tuple[bool, str, str]]:
    """Run each page in its folder: whether it came to its end, and what it printed on both outputs."""
    done = subprocess.run(
        [sys.executable, "-m", "support.pages_in_turn", json.dumps([[page, str(at)] for page, at in pages.items()])],
        env=with_support(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    ended = dict(json.loads(done.stdout))
    return {page: (ended[page], *(path.read_text() for path in _outputs(at))) for page, at in pages.items()}


def _outputs(folder: Path) -> tuple[Path, Path]:
    return folder / "stdout.txt", folder / "stderr.txt"


@contextmanager
def _printing_to(paths: Sequence[Path]) -> Iterator[None]:
    """What this process and its children print goes to files."""
    own = [os.dup(stream) for stream in (1, 2)]
    for stream, path in zip((1, 2), paths, strict=True):
        with path.open("wb") as file:
            os.dup2(file.fileno(), stream)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, kept in zip((1, 2), own, strict=True):
            os.dup2(kept, stream)
            os.close(kept)


def _run(page: str, folder: Path) -> bool:
    os.chdir(clone(folder))
    with _printing_to(_outputs(folder)):
        try:
            run_blocks(page, str(folder), {})
        except BaseException:
            traceback.print_exc()
            return False
        finally:
            if (session := SparkSession.getActiveSession()) is not None:
                session.stop()
        return True


def main(pages: Sequence[tuple[str, str]]) -> list[tuple[str, bool]]:
    """Run pages in their folders; whether each came to its end."""
    return [(page, _run(page, Path(folder))) for page, folder in pages]


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))

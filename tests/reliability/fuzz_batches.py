"""A million strange record batches, read, checked and written by native code as by aiokafka's classes: `make fuzz`, or

python tests/reliability/fuzz_batches.py --seed 7 --batches 100000 --sanitized

With `--sanitized` the native part is built for this run with the sanitizers of addresses and of undefined behaviour,
which end it where a byte is read or written that is none of its own.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.strange_batches import Compared, compare

from tidelog.broker.records import reader

ROOT = Path(__file__).resolve().parents[2]
# The run ends where undefined behaviour is met, too.
_SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"


def compared(seed: int, batches: int) -> Compared:
    """What a comparison of the native codec with aiokafka's classes saw."""
    if reader.NATIVE is None:
        raise SystemExit(f"There is nothing to compare: record batches are read in {reader.READER}")
    from tidelog.broker.records.native_records import NativeRecords

    return compare(seed, batches, NativeRecords())


def sanitized(folder: Path) -> dict[str, str]:
    """Build the native part with sanitizers; the variables by which this program loads it."""
    environment = {**os.environ, "CFLAGS": _SANITIZERS, "LDFLAGS": _SANITIZERS}
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, folder)
    shutil.copytree(ROOT / "platform", folder / "platform", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder / "built", folder]
    subprocess.run(command, env=environment, check=True)
    asked = (["gcc", f"-print-file-name=lib{name}.so"] for name in ("asan", "ubsan"))
    libraries = [subprocess.check_output(command, text=True).strip() for command in asked]
    # Python keeps some memory to its end; and it is malloc that has what is freed looked at, not Python's pools.
    options = {"ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc", "LD_PRELOAD": " ".join(libraries)}
    return {**os.environ, **options, "PYTHONPATH": str(folder / "built")}


def main() -> int:
    """Run once; 1 when something was different."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None, help="which batches; by default others each time")
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sanitized", action="store_true")
    given = parser.parse_args()
    if given.sanitized:
        with tempfile.TemporaryDirectory(prefix="tidelog-fuzz-") as folder:
            again = [sys.executable, *(word for word in sys.argv if word != "--sanitized")]
            return subprocess.run(again, env=sanitized(Path(folder)), check=False).returncode
    seed = given.seed if given.seed is not None else int.from_bytes(os.urandom(3), "big")
    print(f"{reader.READER} of {getattr(reader.NATIVE, '__file__', None)}")
    print(f"seed {seed}; again: python tests/reliability/fuzz_batches.py --seed {seed}", flush=True)
    each = -(-given.batches // given.processes)
    with ProcessPoolExecutor(given.processes) as processes:
        # Each process has a seed of its own, by which any difference is had again.
        found = list(processes.map(compared, range(seed, seed + given.processes), repeat(each)))
    for one in found:
        print(
            f"{one.batches} read: {one.taken} taken, {one.refused} refused; {one.good} checked; {one.encoded} written"
        )
        print(*one.differences, sep="\n\n")
    return any(one.differences for one in found)


if __name__ == "__main__":
    sys.exit(main())

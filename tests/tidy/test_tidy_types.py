"""Types and style, as `make typecheck` and `make lint` look at them, in the queue of the tests: so no core idles."""

import subprocess

import pytest
from tidy_repository import ROOT


@pytest.mark.parametrize("target", ["typecheck-product", "typecheck-benchmarks", "lint"])
def test_what_make_checks_is_right(target: str) -> None:
    done = subprocess.run(["make", "--silent", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

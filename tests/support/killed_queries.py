"""Queries in processes of their own, which a test kills."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tidelog.log.lake import Lake


@contextmanager
def kept_running(script: Path, lake: Lake, checkpoint: str, **more: str) -> Iterator[Callable[[], bool]]:
    """A script as a process of its own, killed at the end; yields what tells whether it has ended before."""
    environment = {**os.environ, "TIDELOG_LAKE": lake.uri, **more}
    with script.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), checkpoint], env=environment, stderr=log, start_new_session=True
        )
        try:
            yield lambda: process.poll() is not None
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # Python and the JVM; Spark's workers end with it
            process.wait()

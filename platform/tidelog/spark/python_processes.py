"""The process from which those Python processes are forked that a local Spark starts to plan queries.

Spark starts one for each kind of work of a data source, and one for each streaming source. Each imports PySpark, out
of an archive without bytecode, pandas, Arrow and tidelog: two seconds of a processor before it does anything. A fork
begins at once, and runs the same module with the same arguments, environment and streams. `forked_python` is what Spark
starts in place of Python.
"""

import gc
import importlib
import json
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final, NoReturn

from tidelog.log.base.environment import ONE_THREAD
from tidelog.spark.forked_python import SOCKET

# What processes of a data source import before they do anything; the modules that Spark starts are run again.
_IMPORTED: Final = (
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark_tidelog",
)
# Kept, as it ends when its stdin is closed.
_BEGUN: Final[list["subprocess.Popen[bytes]"]] = []
_SERVE: Final = (
    "import pathlib, sys; from tidelog.spark import python_processes as p; p.serve(pathlib.Path(sys.argv[1]))"
)
_LENGTH: Final = 4
_LONGEST: Final = 1 << 24


@cache
def forking_python() -> str:
    """The path of a program to give Spark for its Python. What it forks from starts now, beside Spark's JVM.

    That process ends with this one, and takes the program's folder along. Where nothing can be forked this is
    `sys.executable`.
    """
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="tidelog-spark-"))
    program = folder / "python"
    client = Path(__file__).with_name("forked_python.py")
    words = (sys.executable, "-IS", str(client), sys.executable, str(folder))
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    environment = {**os.environ, **ONE_THREAD, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}
    # Ctrl-C is for the program that has begun this; Spark's own processes don't get it either.
    process = subprocess.Popen(  # noqa: S603 - this Python and this module
        [sys.executable, "-c", _SERVE, str(folder)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    _BEGUN.append(process)
    return str(program)


def serve(folder: Path) -> None:
    """Fork a process for each request, until stdin ends; then remove the folder."""
    try:
        for name in _IMPORTED:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no caller asks how a process ended
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(str(folder / SOCKET))
            listening.listen(64)
            while listening.fileno() in select.select([0, listening.fileno()], [], [])[0]:
                asked, _ = listening.accept()
                if len(os.listdir("/proc/self/task")) > 1:
                    asked.sendall(bytes(_LENGTH))
                elif os.fork() == 0:
                    listening.close()
                    _become(asked)
                asked.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _become(asked: socket.socket) -> NoReturn:
    """Run what is asked for, in its environment and with its streams, and end."""
    code = 1
    try:
        head, streams, _, _ = socket.recv_fds(asked, _LENGTH, 3)
        with asked.makefile("rb") as reader:
            said = json.loads(reader.read(min(int.from_bytes(head, "big"), _LONGEST)))
        asked.sendall(os.getpid().to_bytes(_LENGTH, "big"))
        asked.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.environ.clear()
        os.environ.update(said["environment"])
        os.chdir(said["folder"])
        module, *arguments = said["module"]
        given = [entry for entry in said["environment"].get("PYTHONPATH", "").split(os.pathsep) if entry]
        sys.path[:] = dict.fromkeys([*given, *sys.path])
        sys.argv[:] = [module, *arguments]
        sys.modules.pop(module, None)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)

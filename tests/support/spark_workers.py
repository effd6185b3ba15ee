"""A process that has imported what Spark's Python processes import, from which those of the tests' session are forked.

Spark starts a Python process for each streaming source and one for each kind of work of a data source, and each imports
PySpark, pandas, Arrow and tidelog for a second of a processor. Forked, they begin at once, and run the same modules
with the same arguments, environment and streams. `spark_start/sitecustomize.py` is what sends them here.
"""

import array
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

SOCKET = "TIDELOG_TESTS_SPARK_WORKERS"
# What the processes of a data source import before they do anything. The modules that Spark starts are run again.
_IMPORTED = ("pandas", "pyarrow.parquet", "pyarrow.compute", "pyspark_tidelog", "tidelog.sources.worker_daemon")
_RUN = (
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
)
_LENGTH = 4


@contextmanager
def forking(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a JVM whose Python processes are forked. `folder` has a short path, and holds the socket."""
    address = folder / "workers"
    # Spark's processes import PySpark from its archives, and so name those in tracebacks.
    archives = map(str, sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip")))
    path = os.pathsep.join([*archives, _path()])
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": path}
    command = [sys.executable, "-m", "support.spark_workers", str(address)]
    server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield {SOCKET: str(address), "PYTHONPATH": f"{Path(__file__).with_name('spark_start')}{os.pathsep}{_path()}"}
    finally:
        server.communicate()


def _path() -> str:
    given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return os.pathsep.join([str(Path(__file__).parents[1]), *given])


def serve(address: str) -> None:
    """Fork a process for each request, until stdin ends."""
    for name in (*_IMPORTED, *_RUN):
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no caller asks how a process ended
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(address)
        listening.listen(64)
        os.write(1, b"ready\n")
        _until_stdin_ends()
        while True:
            asked, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                _become(asked)
            asked.close()


def _until_stdin_ends() -> None:
    """A process that waits for it takes this one along."""
    server = os.getpid()
    if os.fork() == 0:
        while os.read(0, 1):
            pass
        os.kill(server, signal.SIGTERM)
        os._exit(0)


def _become(asked: socket.socket) -> None:
    """Run what is asked for, in its environment and with its streams, and end."""
    code = 1
    try:
        streams = array.array("i")
        head, ancillary, _, _ = asked.recvmsg(_LENGTH, socket.CMSG_LEN(3 * streams.itemsize))
        for _, _, data in ancillary:
            streams.frombytes(data)
        with asked.makefile("rb") as reader:
            said = json.loads(reader.read(int.from_bytes(head, "big")))
        asked.sendall(os.getpid().to_bytes(_LENGTH, "big"))
        asked.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(said["environment"])
        os.chdir(said["folder"])
        module, *arguments = said["module"]
        sys.path[:] = list(dict.fromkeys([*said["environment"].get("PYTHONPATH", "").split(os.pathsep), *sys.path]))
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


if __name__ == "__main__":
    serve(sys.argv[1])

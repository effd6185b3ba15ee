"""The native part is built where there is a compiler; without one, all is installed and works, and says why."""

import os
import subprocess
import sys
import tarfile
import zipfile

import pytest
from support.distributions import distributions
from support.tools import require

NATIVE = "tidelog/broker/records/native."
SAYS = """
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


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Build a wheel and an sdist, whatever `make dist` has built."""

    def build(compiler=None):
        monkeypatch.delenv("TIDELOG_DIST", raising=False)
        if compiler is not None:
            monkeypatch.setenv("CC", compiler)
        return distributions(tmp_path)

    return build


def said(wheel, folder):
    """What the product of a wheel says of its reader, with the packages of this environment."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    command = [sys.executable, "-c", SAYS, str(folder)]
    tests = os.path.join(os.path.dirname(__file__), os.pardir)
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": tests}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_a_compiler_there_is_a_reader_in_python(build, tmp_path):
    wheel = build("/bin/false")["wheel"]
    read, reader = said(wheel, tmp_path / "site")
    assert read == "[300] b'v' AiokafkaRecords"
    assert reader.startswith("Python: native code was not built")


def test_with_a_compiler_the_wheel_has_the_native_reader_and_the_sdist_its_sources(build, tmp_path):
    require("gcc")
    require("Python.h")
    built = build()
    with zipfile.ZipFile(built["wheel"]) as archive:
        names = archive.namelist()
    assert [name for name in names if name.startswith(NATIVE) and name.endswith((".so", ".pyd"))]
    assert not built["wheel"].name.endswith("-any.whl")
    assert said(built["wheel"], tmp_path / "site") == ["[300] b'v' NativeRecords", "native code"]
    with tarfile.open(built["sdist"]) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    folder = "platform/tidelog/broker/records"
    assert {"setup.py", f"{folder}/native.pyx", f"{folder}/crc32c.h"} <= sources

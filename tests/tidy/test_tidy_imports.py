"""Imports go one way: from the edge of the program to its log."""

import pytest
from tidy_imports import (
    FLOORS,
    IMPORT_SERVERS,
    LAYER,
    bare_folder_imports,
    climbing_imports,
    floor_of,
    import_cycle,
    imports_of_commands,
    imports_of_servers,
    mutual_folders,
    part_of,
    words_of_faces,
    wrong_way_imports,
)
from tidy_repository import package_folders, package_sources, python_sources
from tidy_source import parse


def complaints(rule, sources):
    return [f"{source.path}:{line}: {text}" for source in sources for line, text in rule(source)]


def not_bare(source):
    return bare_folder_imports(source, package_folders())


def test_every_part_has_its_layer():
    parts = {module.split(".")[1] if "." in module else module for module in package_folders().values()}
    assert parts - LAYER.keys() == set(), "new part: give it a layer in tidy_imports.LAYERS"


def test_the_package_imports_one_way():
    assert complaints(wrong_way_imports, package_sources()) == []


def test_operations_know_no_face():
    assert complaints(words_of_faces, package_sources()) == []
    bad = "from prometheus_client.core import Metric\ndef f():\n    import typer"
    assert [line for line, _ in words_of_faces(parse(bad, "tidelog.operations.groups"))] == [1, 3]
    assert list(words_of_faces(parse(bad, "tidelog.server.process.lake_metrics"))) == []


def test_no_face_imports_a_server_without_a_reason():
    assert complaints(imports_of_servers, package_sources()) == []
    for server, reasons in IMPORT_SERVERS.items():
        text = f"tidelog.{server}."
        users = {source.module.rpartition(".")[0] for source in package_sources() if text in source.text}
        assert reasons.keys() - users == set()
    bad = "def f():\n    from tidelog.broker.broker import Broker"
    assert [line for line, _ in imports_of_servers(parse(bad, "tidelog.cli.console"))] == [2]
    assert list(imports_of_servers(parse(bad, "tidelog.cli.broker.serving"))) == []
    bad = "from tidelog.registry.api.guard import answered"
    assert [line for line, _ in imports_of_servers(parse(bad, "tidelog.cli.broker.serving"))] == [1]


def test_no_family_of_commands_imports_another():
    assert complaints(imports_of_commands, package_sources()) == []
    bad = "from tidelog.cli.serving.plan import BrokerPlan\nfrom tidelog.cli.broker.serving import serve"
    assert [line for line, _ in imports_of_commands(parse(bad, "tidelog.cli.demo.kafka_steps"))] == [2]
    assert list(imports_of_commands(parse(bad, "tidelog.cli.broker.commands"))) == []
    bad = "from tidelog.cli.topics import Name"
    assert [line for line, _ in imports_of_commands(parse(bad, "tidelog.cli.lakes"))] == [1]
    assert list(imports_of_commands(parse(bad, "tidelog.cli.main"))) == []


def climbing(source):
    return climbing_imports(source, package_folders().values())


def test_every_folder_of_the_log_has_its_floor():
    folders = {floor_of(f"{module}.x", package_folders().values()) for module in package_folders().values()} - {None}
    assert folders == {*FLOORS}


def test_the_log_imports_downwards():
    assert complaints(climbing, package_sources()) == []


def test_no_two_folders_import_each_other():
    assert mutual_folders(package_sources()) == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("tidelog.log.base.errors", "from tidelog.log.delta.layout import LOG_FOLDER"),
        ("tidelog.log.rules.appends", "import tidelog.log.door.commit_loop"),
        ("tidelog.log.upkeep.trim", "from tidelog.log.rows import row_log"),
        ("tidelog.log.rows.row_log", "from tidelog.log.lake import Lake"),
        ("tidelog.log.topic", "from tidelog.log.follow.loop import FetchLoop"),
    ],
)
def test_an_import_upwards_is_found(module, text):
    assert list(climbing(parse(text, module)))


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("tidelog.log.door.commit_loop", "from tidelog.log.state.verify import verify_entry"),
        ("tidelog.log.follow.loop", "from tidelog.log.lake import Lake"),
        ("tidelog.log.lake", "from tidelog.log.rows.row_log import RowLog"),
        ("tidelog.log", "from tidelog.log.follow.loop import FetchLoop"),
        ("tidelog.groups.model", "from tidelog.log.lake import Lake"),
    ],
)
def test_an_import_downwards_is_left_alone(module, text):
    assert list(climbing(parse(text, module))) == []


def test_folders_that_import_each_other_are_found():
    one = parse("from tidelog.b.two import x", "tidelog.a.one", "a/one.py")
    two = parse("import tidelog.a.three", "tidelog.b.two", "b/two.py")
    three = parse("", "tidelog.a.three", "a/three.py")
    door = parse("from tidelog.a.one import x", "tidelog.b", "b/__init__.py")
    assert mutual_folders([one, two, three]) == [("a", "b")]
    assert mutual_folders([one, three, door, parse("", "tidelog.b.two", "b/two.py")]) == [("a", "b")]


def test_a_folder_may_give_names_of_its_own_folders():
    inner = parse("from tidelog.b.base import x", "tidelog.b.deep.one", "b/deep/one.py")
    door = parse("from tidelog.b.deep.one import y", "tidelog.b", "b/__init__.py")
    assert mutual_folders([inner, door, parse("", "tidelog.b.base", "b/base.py")]) == []


def test_nobody_imports_a_folder_by_its_name():
    assert complaints(not_bare, python_sources()) == []


def test_no_modules_import_each_other_in_a_circle():
    assert import_cycle(package_sources()) == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("tidelog.log.door.commit_loop", "from tidelog.transactions.state import State"),
        ("tidelog.log.door.commit_loop", "import tidelog.spark"),
        ("tidelog.log.door.commit_loop", "from tidelog import sinks"),
        ("tidelog.log.door.commit_loop", "import tidelog"),
        ("tidelog.log.door.commit_loop", "from tidelog import Lake"),
        ("tidelog.log.door.commit_loop", "def f():\n    from tidelog.cli.main import run"),
        ("tidelog.log.base.errors", "from tidelog.schemas.compile import compile_schema"),
        ("tidelog.schemas.avro.values", "from tidelog.log.typed.tables import ValueTable"),
        ("tidelog.schemas.compatibility", "from tidelog.operations.schemas.fold import RegistryState"),
        ("tidelog.transactions.state", "import tidelog.groups.offsets as offsets"),
        ("tidelog.sources.reader", "from tidelog.sinks.writer import Writer"),
        ("tidelog.sources.reader", "from tidelog.groups import positions"),
        ("tidelog.retention.plan", "import tidelog.sources"),
        ("tidelog.groups.offsets", "from tidelog.clients.consumer.consumer import Consumer"),
        ("tidelog.check.lake", "import tidelog.spark.session"),
        ("tidelog.operations.groups", "from tidelog.clients.admin.group_types import GroupMember"),
        ("tidelog.operations.groups", "from tidelog.clients.values.partitions import TopicPartition"),
        ("tidelog.retention.run", "from tidelog.operations.snapshots import LakeSnapshot"),
        ("tidelog.broker.admin.topics", "from tidelog.clients.admin import topic_requests"),
        ("tidelog.connect.runtime.offsets", "def f():\n    from tidelog.clients.admin.client import AdminClient"),
        ("tidelog.console.transactions", "from tidelog.clients.admin.enums import ConfigSource"),
        ("tidelog.connect.converters.base", "from tidelog.schema_registry import SchemaRegistryClient"),
        ("tidelog.clients.producer.producer", "import pyspark_tidelog"),
        ("tidelog.server.process.serving", "from tidelog.commands.options import Session"),
        ("tidelog.server.logins", "from tidelog.broker.base.settings import BrokerSettings"),
    ],
)
def test_a_wrong_way_import_is_found(module, text):
    assert list(wrong_way_imports(parse(text, module)))


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("tidelog.log.door.commit_loop", "from tidelog.log.state.topic_state import State"),
        ("tidelog.log.typed.facts", "from tidelog.schemas.compile import compile_schema"),
        ("tidelog.schemas.avro.values", "from tidelog.log.base.errors import TidelogError"),
        ("tidelog.sinks.writer", "from tidelog.log.segments.writer import Segment\nimport pyarrow"),
        ("tidelog.sinks.writer", "from tidelog.transactions import intents"),
        ("tidelog.spark.session", "from tidelog.sources.reader import Reader"),
        ("tidelog.operations.groups", "from tidelog.groups.model import Group"),
        ("tidelog.clients.admin.client", "from tidelog.operations.groups import describe_group"),
        ("pyspark_tidelog.source", "from tidelog.sinks.writer import Writer"),
        ("tidelog.__main__", "from tidelog.cli.main import run"),
        ("tidelog", "from tidelog.log.lake import Lake"),
        ("tidelog", "from tidelog.admin import AdminClient"),
        ("tidelog.admin", "from tidelog.clients.admin.client import AdminClient"),
        ("tidelog.connect.converters.base", "from tidelog.clients.schema_registry.client import SchemaRegistryClient"),
    ],
)
def test_an_import_inwards_is_left_alone(module, text):
    assert list(wrong_way_imports(parse(text, module))) == []


@pytest.mark.parametrize(
    "text",
    [
        "import sources",
        "from sinks import writer",
        "from sources.reader import Reader",
        "import jobs.retention",
        "import platform.tidelog.log",
        "from platform import tidelog",
        "from platform.tidelog.spark.session import session",
    ],
)
def test_a_bare_folder_import_is_found(text):
    assert list(not_bare(parse(text)))


@pytest.mark.parametrize("text", ["import platform", "from platform import machine", "from tidelog import sources"])
def test_other_imports_of_those_names_are_left_alone(text):
    assert list(not_bare(parse(text))) == []


def test_a_circle_is_found():
    a = parse("from tidelog.log.b import f", "tidelog.log.a")
    b = parse("def g():\n    from tidelog.log import a", "tidelog.log.b")
    package = parse("from tidelog.log.a import g", "tidelog.log", "platform/tidelog/log/__init__.py")
    assert set(import_cycle([package, a, b])) == {"tidelog.log.a", "tidelog.log.b"}
    assert import_cycle([package, a, parse("import pyarrow", "tidelog.log.b")]) == []


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("tidelog.log.base.errors.TidelogError", "log.base"),
        ("tidelog.log.lake.Lake", "log"),
        ("tidelog.log", "log"),
        ("tidelog.schemas.avro", "schemas"),
        ("tidelog", "tidelog"),
        ("tidelog.Lake", "tidelog"),
        ("tidelog.admin.AdminClient", "tidelog"),
        ("tidelog.clients.admin.client", "clients.admin"),
        ("tidelog.clients.aio.producer", "clients"),
        ("pyspark_tidelog", "pyspark_tidelog"),
        ("tidelogger", ""),
        ("pyarrow", ""),
    ],
)
def test_the_part_of_a_name(name, part):
    assert part_of(name) == part

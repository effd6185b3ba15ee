"""What holds for every command: options before and after its name, errors, help."""

import json
from tempfile import NamedTemporaryFile

import pytest
from support.cli_calls import answer, cli, done, lake_address, open_lake, refused
from typer.main import get_command

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.state import Tenant
from tidelog.broker.records.reader import READER
from tidelog.cli.main import app
from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.operations.cuts import create_cut
from tidelog.schema_registry import Schema, SchemaRegistryClient
from tidelog.transactions.transaction_log import TransactionLog

PASSWORD = NamedTemporaryFile("w")  # noqa: SIM115 - open as long as the tests
PASSWORD.write("a password\n")
PASSWORD.flush()
SCHEMA = NamedTemporaryFile("w", suffix=".avsc")  # noqa: SIM115 - as above
SCHEMA.write('"int"')
SCHEMA.flush()
# Each command with arguments that make it read from, or write to, a lake.
COMMANDS = [
    ["topic", "create", "new"],
    ["topic", "list"],
    ["topic", "describe", "orders"],
    ["topic", "alter", "orders", "--partitions", "2"],
    ["topic", "delete", "orders", "--yes"],
    ["topic", "delete-records", "orders", "--offset", "0:-1"],
    ["lake", "describe"],
    ["lake", "alter", "--config", "num.partitions=2"],
    ["produce", "orders"],
    ["consume", "orders", "-e"],
    ["check"],
    ["maintain", "--only", "retention"],
    ["forget", "--topic", "orders", "--key", "k"],
    ["group", "list"],
    ["group", "describe", "billing"],
    ["group", "reset-offsets", "billing", "--topic", "orders", "--to-latest", "--execute"],
    ["group", "alter", "billing", "--config", "consumer.session.timeout.ms=50000"],
    ["group", "delete", "billing"],
    ["group", "delete-offsets", "billing", "--topic", "orders"],
    ["cut", "create", "saturday"],
    ["cut", "list"],
    ["cut", "describe", "friday"],
    ["cut", "delete", "friday"],
    ["topic", "rewind", "orders", "--to-cut", "friday"],
    ["lake", "rewind", "--to-cut", "friday"],
    ["transaction", "list"],
    ["transaction", "describe", "copier"],
    ["transaction", "abort", "copier"],
    ["producer", "list"],
    ["broker", "list"],
    ["broker", "describe"],
    ["user", "add", "ann", "--password-file", PASSWORD.name],
    ["user", "list"],
    ["user", "remove", "alice"],
    ["acl", "list"],
    ["acl", "add", "--principal", "ann", "--topic", "orders"],
    ["acl", "remove", "--principal", "alice"],
    ["acl", "export", "--iam", "--root", "s3://bucket/lake"],
    ["quota", "list"],
    ["quota", "set", "--user", "ann", "producer_byte_rate=1"],
    ["quota", "remove", "--user", "alice"],
    ["tenant", "create", "crm", "--prefix", "crm."],
    ["tenant", "list"],
    ["tenant", "alter", "sales", "--quota", "producer_byte_rate=1"],
    ["tenant", "remove", "sales"],
    ["connect", "list"],
    ["schema", "list"],
    ["schema", "show", "orders-value"],
    ["schema", "register", "new-value", SCHEMA.name],
    ["schema", "check", "orders-value", SCHEMA.name],
    ["schema", "delete", "orders-value"],
    ["schema", "config"],
    ["perf", "produce", "--topic", "orders", "--num-records", "1", "--record-size", "1"],
    ["perf", "consume", "--topic", "orders", "--messages", "1", "--timeout", "0"],
]
# The commands that have commands.
FAMILIES = (
    "topic", "lake", "group", "transaction", "producer", "perf", "broker", "user", "acl", "quota", "tenant", "registry",
    "schema", "connect", "cut",
)  # fmt: skip
# Commands that begin a lake, and what has each fail all the same.
MAKES_A_LAKE = {
    ("topic", "create"): ["--partitions", "0"],
    ("schema", "register"): ["--type", "protobuf"],
}
by_name = pytest.mark.parametrize("command", COMMANDS, ids=lambda c: "-".join(c[:2]))


def places(command, *options):
    """The command with options before, amid and after its words."""
    return [
        [*options, *command],
        [*command, *options],
        *([[command[0], *options, *command[1:]]] if command[0] in FAMILIES else []),
    ]


def filled(address):
    """A lake with a topic, and a group that has read it."""
    with open_lake(address) as opened:
        opened.create_topic("orders")
        LoggedPositions(GroupLog(opened)).publish("billing", {"orders": {0: 0}})
        TransactionLog(opened).init("copier", 60_000)
        create_cut(opened, "friday")
        access = AccessLog(opened)
        access.upsert_scram("alice", credential(ScramMechanism.SHA_512, "secret", b"salt" * 4))
        access.create_tenant(Tenant("sales", "sales.", ("sales",)))
        SchemaRegistryClient({"lake": opened}).register_schema("orders-value", Schema('"int"'))
    return address


@pytest.fixture
def lake():
    return filled(lake_address())


def test_all_commands_are_covered():
    words = {tuple(c[:2]) if c[0] in FAMILIES else (c[0],) for c in COMMANDS}
    found = {
        (name, *sub)
        for name, command in get_command(app).commands.items()
        for sub in ([(s,) for s in command.commands] if hasattr(command, "commands") else [()])
    }
    # These name two lakes, or need one that follows another: test_cli_mirror.
    mirrors = {("mirror", sub) for sub in ("start", "status", "promote", "compare")}
    # These run until they are stopped, need no lake, or a connector: test_connect_command and test_connect_processes.
    workers = {("connect", sub) for sub in ("start", "plugins", "status")}
    serve = {("broker", "start"), ("broker", "check-config"), ("registry", "start"), ("console",)}
    # These look at what may be broken, and have exit codes and formats of their own: test_cli_doctor.
    look = {("doctor",), ("metrics",)}
    # These name two lakes by their addresses: test_cli_lake_branches.
    branches = {("lake", sub) for sub in ("branch", "branches", "diff")}
    assert found - mirrors - workers - serve - look - branches - {("demo",)} == words


@by_name
def test_the_lake_is_taken_before_and_after_the_command(command):
    for args in places(command, "--lake", "LAKE"):
        address = lake_address()
        filled(address)
        done(*(address if a == "LAKE" else a for a in args))


@by_name
def test_the_lake_of_the_environment(command, lake):
    done(*command, env={"TIDELOG_LAKE": lake})


@by_name
def test_without_a_lake(command):
    said = refused(2, *command)
    assert said.startswith("error: No lake is given")
    assert "--lake" in said
    assert "TIDELOG_LAKE" in said


def test_which_lake_counts(lake):
    other = lake_address()
    open_lake(other)
    for args in (
        ["topic", "list", "--lake", lake],
        ["--lake", other, "topic", "list", "--lake", lake],
        ["--lake", other, "topic", "--lake", lake, "list"],
    ):
        assert done(*args, env={"TIDELOG_LAKE": other}).stdout == "_schemas\norders\n"
    assert done("--lake", lake, "topic", "list", env={"TIDELOG_LAKE": other}).stdout == "_schemas\norders\n"


@by_name
def test_options_of_the_store_are_taken_before_and_after_the_command(command, lake):
    for args in places(command, "--store-option", "lake.s3.region=r"):
        assert "takes no options, but got lake.s3.region:" in refused(1, "--lake", lake, *args)


def test_options_of_the_store_are_put_together(lake):
    words = [
        f"--store-option={option}" for option in ("lake.s3.region=a=b", "lake.s3.express=true", "lake.s3.region=c")
    ]
    assert "got lake.s3.express, lake.s3.region:" in refused(1, words[0], "topic", words[1], "list", "--lake", lake)
    assert "'lake.s3.region' is given twice" in refused(2, *words, "topic", "list", "--lake", lake)
    said = refused(2, "--store-option", "lake.s3.session.token:hunter2", "topic", "list", "--lake", lake)
    assert "is not of the form key=value" in said
    assert "hunter2" not in said


@by_name
def test_json_is_taken_before_and_after_the_command(command):
    for args in places(command, "--format", "json"):
        address = lake_address()
        filled(address)
        out = done("--lake", address, *args).stdout
        assert (
            all(json.loads(line) for line in out.splitlines())
            if command[0] == "consume"
            else json.loads(out) is not None
        )


def test_the_later_format_counts(lake):
    assert done("--format", "json", "topic", "list", "--format", "text", "--lake", lake).stdout == "_schemas\norders\n"


@by_name
def test_a_lake_that_is_not_there(command):
    if tuple(command[:2]) not in MAKES_A_LAKE:
        assert "There is no lake at memory://" in refused(1, *command, "--lake", lake_address())


@by_name
@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("ftp://x/y", "The address scheme 'ftp://' is unknown"),
        ("file://host/x", "names the host 'host'"),
        ("localhost:9092", "is the address of Kafka brokers"),
        ("s3:/bucket/lake", "Write that"),
        ("~/lake", "begins with '~'"),
        ("C:\\lake", "is a path of Windows"),
        ("", "No lake is given"),
    ],
)
def test_an_address_that_is_none(command, address, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert why in refused(2 if not address else 1, *command, "--lake", address)
    assert list(tmp_path.iterdir()) == []


@by_name
def test_debug_shows_where_an_error_happened(command):
    for args in places(command, "--debug"):
        result = cli(*args, "--lake", "ftp://x/y")
        assert result.exit_code == 1
        assert "Traceback" in result.stderr
        assert result.stderr.rstrip().splitlines()[-1].startswith("error: The address scheme 'ftp://' is unknown.")


@pytest.mark.parametrize(
    "args", [["topik"], ["topic", "liszt"], ["--format", "xml", "topic", "list"], ["topic", "list", "--frmat", "json"]]
)
def test_wrong_usage(args):
    assert "Usage: tidelog" in refused(2, *args) or args == ["--format", "xml", "topic", "list"]


def test_version():
    program, batches = done("--version").stdout.splitlines()
    assert program.startswith("tidelog 0.")
    assert batches == f"Record batches are read in {READER}"


@pytest.mark.parametrize("words", [[], *(c[: 2 if c[0] in FAMILIES else 1] for c in COMMANDS)])
def test_help_has_an_example(words):
    text = done(*words, "--help").stdout
    assert "Example: " in text
    assert "--lake" in text
    assert done(*words, "-h").stdout == text


def all_commands(group=None):
    for command in (group or get_command(app)).commands.values():
        yield command
        if hasattr(command, "commands"):
            yield from all_commands(command)


@pytest.mark.parametrize("command", list(all_commands()), ids=lambda c: c.name)
def test_help_leaves_line_breaks_to_the_terminal(command):
    assert "\n" not in command.help.replace("\n\n", "")
    assert all(p.strip() for p in command.help.split("\n\n"))


@pytest.mark.parametrize("words", [c[: 1 + (c[0] in FAMILIES)] for c in COMMANDS], ids="-".join)
def test_help_shows_no_default_that_is_code(words):
    assert "<class" not in done(*words, "--help").stdout


def test_help_names_the_exit_codes():
    text = " ".join(done("--help").stdout.split())
    assert (
        "0 done; 1 the operation failed; 2 wrong usage; 3 'check' or 'doctor' found errors; 4 'forget' is done" in text
    )
    assert "130 interrupted by Ctrl-C" in text


def test_commands_without_words_show_help():
    for words in ([], *([family] for family in FAMILIES)):
        result = cli(*words)
        assert result.exit_code == 2
        assert "Usage: " in result.output


def test_a_folder_that_is_a_table_is_no_lake(tmp_path):
    open_lake(str(tmp_path)).create_topic("orders")
    said = refused(1, "topic", "list", "--lake", str(tmp_path / "orders"))
    assert "is a Delta table, not a lake" in said


def test_a_folder_that_is_a_table_is_no_topic(tmp_path):
    open_lake(str(tmp_path))
    log = tmp_path / "plain" / "_delta_log"
    log.mkdir(parents=True)
    lines = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "x", "format": {}, "schemaString": "{}", "partitionColumns": [], "configuration": {}}},
        {"commitInfo": {"timestamp": 1, "operation": "CREATE TABLE"}},
    ]
    (log / f"{0:020d}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for command in (["topic", "describe", "plain"], ["consume", "plain", "-e"], ["produce", "plain"]):
        assert "is a Delta table but not a topic" in refused(1, *command, "--lake", str(tmp_path))
    assert answer("topic", "list", "--lake", str(tmp_path)) == []


@by_name
def test_with_json_an_error_is_json_too(command):
    if tuple(command[:2]) in MAKES_A_LAKE:
        command = [*command, *MAKES_A_LAKE[command[0], command[1]]]
    for args in places(command, "--format", "json"):
        result = cli(*args, "--lake", lake_address())
        assert (result.exit_code, result.stdout) == (1, "")
        (line,) = result.stderr.splitlines()
        error = json.loads(line)["error"]
        assert error["type"] in ("LakeNotFoundError", "InvalidPartitionsError", "SchemaRegistryError")
        assert error["message"].endswith((".", "'.", "SR code 42201)"))
        assert error["retriable"] is False


@pytest.mark.parametrize(
    "args", [["topik"], ["topic", "liszt"], ["topic", "create"], ["topic", "list", "--frmat"], ["topic", "list"]]
)
@pytest.mark.parametrize("option", [["--format", "json"], ["--format=json"]])
def test_with_json_wrong_usage_is_json_too(option, args):
    result = cli(*option, *args)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert json.loads(line)["error"]["message"]

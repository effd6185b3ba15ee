"""The documents agree with the code: examples, names, configuration keys, links."""

import ast
import json
import re
from pathlib import PurePosixPath

import pytest
from tidy_docs import (
    CONFIGURATION,
    PAGES,
    WAITING,
    constants,
    json_examples,
    undocumented,
    unknown_files,
    unnamed,
    with_tables,
)
from tidy_repository import ROOT, files, package_sources, texts

from tidelog.groups.store.rows import KIND
from tidelog.log.config.overrides import keys_of
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import CommitInfo, Entry, Metadata, decode_entry
from tidelog.log.delta.disk_format import PROTOCOL
from tidelog.log.delta.schema import COLUMNS, DELTA_SCHEMA, DELTA_TYPES, TYPED
from tidelog.log.delta.written_schemas import parse_written_schemas
from tidelog.log.door.topic_machine import topic_machine
from tidelog.log.rows.row_log import row_machine
from tidelog.log.rows.state import RowState
from tidelog.log.state import topic_state
from tidelog.log.state.topic_state import TopicState
from tidelog.log.state.verify import IMPLEMENTED_PROPERTIES
from tidelog.log.typed.growth import MOST_FIELDS, MOST_LEVELS
from tidelog.log.typed.tables import MOST_SCHEMA_BYTES, MOST_SCHEMAS

FORMAT = (ROOT / "docs/format.md").read_text(encoding="utf-8")
EXAMPLES = dict(json_examples(FORMAT))
ENTRIES = sorted(name for name in EXAMPLES if layout.version_of(name) is not None)
DOCUMENTS = sorted(path for path in texts() if path.endswith(".md"))
DECISIONS = [path for path in DOCUMENTS if re.match(r"decisions/\d", path)]


def entry_bytes(name):
    """The entry as it is in the log: an object a line, the schema's text put back for its ellipsis."""
    actions = EXAMPLES[name]
    for action in actions:
        if action.get("metaData", {}).get("schemaString") == "…":
            action["metaData"]["schemaString"] = DELTA_SCHEMA
    return "".join(f"{json.dumps(action)}\n" for action in actions).encode()


# --- docs/format.md ----------------------------------------------------------------------------------------


def test_the_example_entries_are_one_log_that_the_code_takes():
    assert [layout.version_of(name) for name in ENTRIES] == list(range(len(ENTRIES)))
    topic, machine = TopicState(), topic_machine("orders")
    for version, name in enumerate(ENTRIES):
        entry = decode_entry(version, entry_bytes(name), name)
        machine.verify(topic, entry)
        topic.apply(entry)
    (segment,) = topic.live(0)
    assert (topic.partitions, topic.start(0), topic.end(0)) == (1, 0, 3)
    assert (segment.base_offset, segment.end, topic.foreign) == (0, 3, ())
    assert "After these eleven entries the topic has one partition with offsets `[0, 3)`" in FORMAT


def test_the_example_of_a_rewrite_keeps_its_rule():
    inputs = [a["add"]["modificationTime"] for name in ENTRIES[1:3] for a in EXAMPLES[name] if "add" in a]
    (rewritten,) = [a["add"] for a in EXAMPLES[ENTRIES[3]] if "add" in a]
    assert rewritten["modificationTime"] == min(inputs)


def test_the_example_of_a_table_of_rows_is_one_that_the_code_takes():
    table = RowState(kind=KIND, read=lambda _: [])
    machine = row_machine("__consumer_offsets", KIND, table.read)
    facts = {"tidelog.format": "2", "tidelog.topic.id": "id", "tidelog.partitions": "1", "tidelog.rows": "groups"}
    made = Metadata("id", "__consumer_offsets", KIND.schema.shape().schema, ("base_offset",), facts, 0)
    appended = decode_entry(1, "".join(f"{json.dumps(a)}\n" for a in EXAMPLES["groups-1"]).encode(), "groups-1")
    for entry in (Entry(0, (PROTOCOL, made), CommitInfo(0, "CREATE TABLE", "request")), appended):
        machine.verify(table, entry)
        table.apply(entry)
    assert table.fold.view("billing").offsets["orders", 0].offset == 42
    for column in KIND.schema.file.names[1:]:
        assert re.search(rf"^\| (?:\w+, )*{column}\b", FORMAT, re.MULTILINE), column


def test_the_schema_is_the_codes():
    assert EXAMPLES["schema"] == [json.loads(DELTA_SCHEMA)]


def test_the_columns_and_schemas_of_typed_topics_are_the_codes():
    columns = [(field.name, DELTA_TYPES[field.type]) for field in TYPED]
    for name, kind in (*columns, (COLUMNS, "struct")):
        assert f"| {name} | {kind} |" in FORMAT
    schemas = parse_written_schemas(json.dumps(*EXAMPLES["value-schemas"]))
    assert [(one.id, one.kind, len(one.references)) for one in schemas] == [(-1, "json", 0), (7, "avro", 1)]
    assert [one.json() for one in schemas] == EXAMPLES["value-schemas"][0]
    bounds = (
        f"{MOST_SCHEMAS:,} schemas with {MOST_SCHEMA_BYTES >> 20} MiB of text, {MOST_FIELDS:,} fields at all levels"
    )
    assert f"{bounds}, {MOST_LEVELS} levels" in FORMAT


@pytest.mark.parametrize("module", [layout, topic_state], ids=lambda module: module.__name__)
def test_every_name_on_disk_is_in_the_format(module):
    assert unnamed(constants(module), FORMAT) == []


def test_every_table_property_is_in_the_format():
    assert [name for name in sorted(IMPLEMENTED_PROPERTIES) if f"`{name}`" not in FORMAT] == []


def test_every_rule_has_its_own_number_and_its_failure():
    rules = re.findall(r"^- \*\*([A-Z]\d+)\.\*\* (.*?)(?=\n- |\n\n)", FORMAT, re.MULTILINE | re.DOTALL)
    numbers = [number for number, _ in rules]
    assert sorted(set(numbers)) == sorted(numbers)
    assert [number for number, text in rules if "*Else*" not in re.sub(r"\s+", " ", text)] == []
    named = re.findall(r"\brules? ([A-Z]\d+)\b", FORMAT)
    assert set(named) <= set(numbers)


# --- docs/configuration.md ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tables"),
    PAGES.items(),
    ids=PAGES,
)
def test_the_tables_of_keys_are_up_to_date(name, tables):
    page = (ROOT / name).read_text(encoding="utf-8")
    assert page == with_tables(page, tables()), f"run .venv/bin/python tests/tidy/tidy_docs.py to write {name}"


@pytest.mark.parametrize("settings", [TopicConfig, LakeConfig])
def test_every_key_is_on_its_page(settings):
    assert undocumented(settings, (ROOT / CONFIGURATION).read_text(encoding="utf-8")) == []


def test_the_keys_that_wait_for_maintenance_are_those_that_nothing_reads():
    read = {
        node.attr
        for source in package_sources()
        # a plan of tidelog.retention does nothing until a job executes it; a fold only goes by what that will do; the
        # console shows it
        if not source.module.startswith(
            ("tidelog.log.config.topics_and_lakes", "tidelog.retention", "tidelog.log.folds", "tidelog.console.")
        )
        for node in source.nodes
        if isinstance(node, ast.Attribute)
    }
    keys = {
        key.name: attribute
        for settings in (TopicConfig, LakeConfig)
        for attribute, key in vars(settings).items()
        if key in keys_of(settings).values()
    }
    by_codec = {name for name in keys if name.startswith("compression.")}  # read in TopicConfig.codec
    by_typing = {name for name in keys if name.startswith(("value.", "topic.validate"))}  # in tidelog.log.typed.facts
    assert {name for name, attribute in keys.items() if attribute not in read} - by_codec - by_typing == WAITING


# --- every document ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", DOCUMENTS)
def test_json_examples_parse(path):
    json_examples(texts()[path])


@pytest.mark.parametrize("path", DOCUMENTS)
def test_links_inside_the_repository_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", texts()[path])
    folder = (ROOT / path).parent
    assert [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if path != "CHANGELOG.md"])
def test_files_that_are_named_are_there(path):
    assert unknown_files(texts()[path], [file for file in files() if not (ROOT / file).is_symlink()]) == []


def test_decisions_are_numbered_without_a_gap():
    assert [int(PurePosixPath(path).name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_the_list_of_decisions_has_every_title_and_the_site_every_page():
    listed = re.findall(r"^(\d+)\. \[(.*)\]\((.*)\)$", texts()["decisions/README.md"], re.MULTILINE)
    titles = [texts()[path].splitlines()[0].removeprefix("# ") for path in DECISIONS]
    assert [(f"{number}. {title}", f"decisions/{link}") for number, title, link in listed] == [
        *zip(titles, DECISIONS, strict=True)
    ]
    assert re.findall(r"^ +- (decisions/\d.*)$", texts()["mkdocs.yml"], re.MULTILINE) == DECISIONS


# --- the rules themselves ----------------------------------------------------------------------------------


def test_an_example_that_does_not_parse_is_found():
    with pytest.raises(ValueError, match="Expecting"):
        json_examples('```json\n{"a": }\n```')


def test_objects_one_after_another_are_read():
    assert json_examples('```json x.json\n{"a": 1}\n{"b": {\n  "c": 2\n}}\n```') == [
        ("x.json", [{"a": 1}, {"b": {"c": 2}}])
    ]


def test_a_file_that_is_not_there_is_found():
    text = "`log/door.py`, `door.py`, `other_door.py`, `groups/rules/`, `groups/gone/`, `pyspark/sql/worker.py`"
    there = ["platform/tidelog/log/door.py", "groups/rules/__init__.py"]
    assert unknown_files(text, there) == ["other_door.py", "groups/gone/"]


def test_a_table_takes_its_place_and_needs_one():
    page = "a\n\n<!-- table: keys -->\n\nold\n\n<!-- end of table -->\n\nb\n"
    assert with_tables(page, {"keys": "new"}) == page.replace("old", "new")
    with pytest.raises(ValueError, match="no mark for"):
        with_tables("no marks", {"keys": "new"})


def test_a_name_that_is_not_there_is_found():
    assert unnamed({"END_TAG": "tidelog.end", "PURGE": "tidelog/purge"}, "the tag `tidelog.end`") == ["PURGE"]


def test_a_key_that_is_not_there_is_found():
    assert "retention.ms" in undocumented(TopicConfig, "`retention.bytes`")

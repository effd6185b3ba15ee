"""`tidelog schema`: what is registered, shown, tested, deleted and set; what is refused, with which exit code."""

import pytest
from support.cli_calls import answer, cli, done, lake_address, open_lake, refused
from support.registries import INT, LONG, TEXT

from tidelog.schema_registry import SchemaRegistryClient

PROTO = 'syntax = "proto3";\nimport "b.proto";\nmessage A {\n  B b = 1;\n}\n'
PROTO_B = 'syntax = "proto3";\nmessage B {\n  string s = 1;\n}\n'


@pytest.fixture
def lake() -> str:
    address = lake_address()
    open_lake(address)
    return address


@pytest.fixture
def file(tmp_path):
    def written(text, name="schema.avsc"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return written


def test_a_schema_is_registered_shown_and_listed(lake, file):
    assert done("--lake", lake, "schema", "list").stdout == ""
    said = done("--lake", lake, "schema", "register", "b-value", file(INT)).stdout
    assert said == "b-value has this schema as version 1, with the id 1.\n"
    assert answer("--lake", lake, "schema", "register", "b-value", file(LONG)) == {
        "subject": "b-value",
        "version": 2,
        "id": 2,
    }
    # What is there keeps its id, from whatever subject.
    assert answer("--lake", lake, "schema", "register", "a-value", file(INT))["id"] == 1
    assert done("--lake", lake, "schema", "list").stdout == "a-value\nb-value\n"
    assert done("--lake", lake, "schema", "list", "--prefix", "b").stdout == "b-value\n"
    assert answer("--lake", lake, "schema", "list") == [
        {"subject": "a-value", "versions": [1], "id": 1, "type": "AVRO"},
        {"subject": "b-value", "versions": [1, 2], "id": 2, "type": "AVRO"},
    ]
    assert done("--lake", lake, "schema", "show", "b-value").stdout == f"{LONG}\n"
    assert done("--lake", lake, "schema", "show", "b-value", "--version", "1").stdout == f"{INT}\n"
    assert done("--lake", lake, "schema", "show", "--id", "2").stdout == f"{LONG}\n"
    found = answer("--lake", lake, "schema", "show", "b-value")
    assert (found["subject"], found["version"], found["id"], found["schema"]) == ("b-value", 2, 2, LONG)


def test_the_first_schema_makes_the_lake_and_a_look_does_not(tmp_path, file):
    address = str(tmp_path / "new")
    assert "There is no lake" in refused(1, "--lake", address, "schema", "list")
    assert done("--lake", address, "schema", "register", "a", file(INT)).stdout.endswith("with the id 1.\n")
    assert done("--lake", address, "schema", "list").stdout == "a\n"


def test_a_schema_of_stdin_and_of_another_type(lake, file):
    done("--lake", lake, "schema", "register", "a", "-", "--type", "json", stdin='{"type": "string"}')
    assert answer("--lake", lake, "schema", "show", "a")["schemaType"] == "JSON"
    done("--lake", lake, "schema", "register", "b", file('{"type": "string"}', "x.json"))
    assert answer("--lake", lake, "schema", "show", "b")["schemaType"] == "JSON"
    assert "'xml' is no type" in refused(2, "--lake", lake, "schema", "register", "a", "-", "--type", "xml")


def test_references_are_named(lake, file):
    done("--lake", lake, "schema", "register", "b", file(PROTO_B, "b.proto"))
    done("--lake", lake, "schema", "register", "a", file(PROTO, "a.proto"), "--reference", "b.proto=b:1")
    assert answer("--lake", lake, "schema", "show", "a")["references"] == [
        {"name": "b.proto", "subject": "b", "version": 1}
    ]
    for wrong in ("b.proto", "b.proto=b", "b.proto=b:x", "=b:1"):
        said = refused(2, "--lake", lake, "schema", "register", "c", file(PROTO, "a.proto"), "--reference", wrong)
        assert "is no reference" in said


def test_a_schema_that_is_not_compatible_is_told_with_the_place(lake, file):
    done("--lake", lake, "schema", "register", "a", file(INT))
    assert done("--lake", lake, "schema", "check", "a", file(LONG)).stdout == "The schema is compatible with a.\n"
    assert "There is no subject other yet" in done("--lake", lake, "schema", "check", "other", file(LONG)).stdout
    said = refused(1, "--lake", lake, "schema", "register", "a", file(TEXT))
    assert "TYPE_MISMATCH" in said
    found = cli("--lake", lake, "schema", "check", "a", file(TEXT))
    assert found.exit_code == 1
    assert "TYPE_MISMATCH" in found.stdout
    # Against one version alone, of all: the newest takes what the first would not.
    done("--lake", lake, "schema", "config", "a", "--compatibility", "none")
    done("--lake", lake, "schema", "register", "a", file(TEXT))
    done("--lake", lake, "schema", "config", "a", "--compatibility", "backward_transitive")
    assert cli("--lake", lake, "schema", "check", "a", file(TEXT)).exit_code == 1
    done("--lake", lake, "schema", "check", "a", file(TEXT), "--version", "2")


def test_deleted_softly_then_for_good(lake, file):
    for text in (INT, LONG):
        done("--lake", lake, "schema", "register", "a", file(text))
    assert done("--lake", lake, "schema", "delete", "a", "--version", "1").stdout == "Deleted 1 version of a.\n"
    assert answer("--lake", lake, "schema", "delete", "a") == {"subject": "a", "deleted": [2], "permanent": False}
    assert done("--lake", lake, "schema", "list").stdout == ""
    assert done("--lake", lake, "schema", "list", "--deleted").stdout == "a\n"
    # Records name schemas by ids: those stay until the schemas are gone for good, which needs a yes.
    assert done("--lake", lake, "schema", "show", "--id", "1").stdout == f"{INT}\n"
    assert "--yes" in refused(2, "--lake", lake, "schema", "delete", "a", "--permanent")
    said = done("--lake", lake, "schema", "delete", "a", "--permanent", "--yes").stdout
    assert said == "Deleted 2 versions of a permanently.\n"
    assert "40403" in refused(1, "--lake", lake, "schema", "show", "--id", "1")


def test_settings_are_shown_set_and_taken_away(lake):
    assert answer("--lake", lake, "schema", "config") == {
        "subject": None,
        "mode": "READWRITE",
        "compatibility": "BACKWARD",
    }
    done("--lake", lake, "schema", "config", "--compatibility", "full")
    assert answer("--lake", lake, "schema", "config", "a")["compatibility"] == "FULL"
    done("--lake", lake, "schema", "config", "a", "--compatibility", "NONE", "--normalize", "--mode", "readonly")
    found = answer("--lake", lake, "schema", "config", "a")
    assert (found["compatibility"], found["normalize"], found["mode"]) == ("NONE", True, "READONLY")
    done("--lake", lake, "schema", "config", "a", "--unset")
    found = answer("--lake", lake, "schema", "config", "a")
    assert (found["compatibility"], found["mode"]) == ("FULL", "READWRITE")
    # A mode that forbids changes lets the others of the same call be made, before it or after it.
    done("--lake", lake, "schema", "config", "a", "--mode", "READONLY")
    assert "Subject a in context . is in read-only mode" in refused(
        1, "--lake", lake, "schema", "config", "a", "--compatibility", "NONE"
    )
    done("--lake", lake, "schema", "config", "a", "--compatibility", "NONE", "--mode", "READWRITE")
    assert answer("--lake", lake, "schema", "config", "a")["compatibility"] == "NONE"
    done("--lake", lake, "schema", "config", "a", "--unset")
    assert "42203" in refused(1, "--lake", lake, "schema", "config", "a", "--compatibility", "some")
    assert "--unset" in refused(2, "--lake", lake, "schema", "config", "a", "--unset", "--mode", "IMPORT")


def test_wrong_words_are_refused(lake, file, tmp_path):
    assert "SUBJECT, or --id" in refused(2, "--lake", lake, "schema", "show")
    assert "is no address" in refused(2, "schema", "list", "--registry", "localhost:8081")
    assert "--registry-user-file goes with" in refused(
        2, "--lake", lake, "schema", "list", "--registry-user-file", file("a:b", "user.txt")
    )
    said = refused(2, "schema", "list", "--registry", "http://127.0.0.1:1", "--registry-user-file", file("", "none"))
    assert "holds no user:password" in said
    found = refused(1, "schema", "list", "--registry", "http://127.0.0.1:1")
    assert "No registry answers at http://127.0.0.1:1" in found
    assert "-1" not in found
    binary = tmp_path / "binary.avsc"
    binary.write_bytes(b"\xff")
    assert "no text in UTF-8" in refused(2, "--lake", lake, "schema", "register", "a", str(binary))
    assert "40401" in refused(1, "--lake", lake, "schema", "show", "a")


def test_another_topic_holds_other_schemas(lake, file):
    done("--lake", lake, "schema", "register", "a", file(INT), "--schemas-topic", "_team")
    assert done("--lake", lake, "schema", "list").stdout == ""
    with open_lake(lake) as opened:
        assert SchemaRegistryClient({"lake": opened, "topic": "_team"}).get_subjects() == ["a"]

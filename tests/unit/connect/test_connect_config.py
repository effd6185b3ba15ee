"""Configurations of connectors: parsed and validated as Kafka's ConfigDef does."""

import pytest

from tidelog.connect.config.definition import ConfigDef, Importance, config_key, validation_json
from tidelog.connect.config.validators import all_of, between, non_empty, one_of, pattern, read_by
from tidelog.connect.config.values import (
    CLASS,
    FILLED,
    KINDS,
    TEXT,
    TEXTS,
    ConfigKind,
    ConnectConfigError,
    Password,
    as_written,
    check_pattern,
    read_as,
    type_of,
    written_value,
)
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.typed_values import Checked, names
from tidelog.log.config.key_type import int_of

READ = [
    (ConfigKind.BOOLEAN, "TRUE", True),
    (ConfigKind.BOOLEAN, " false ", False),
    (ConfigKind.INT, " 7 ", 7),
    (ConfigKind.INT, "-2147483648", -(1 << 31)),
    (ConfigKind.SHORT, "+3", 3),
    (ConfigKind.LONG, str((1 << 63) - 1), (1 << 63) - 1),
    (ConfigKind.DOUBLE, "0.5", 0.5),
    (ConfigKind.LIST, "a, b ,c", ["a", "b", "c"]),
    (ConfigKind.LIST, "", []),
    (ConfigKind.STRING, " x ", "x"),
    (ConfigKind.CLASS, "a.B", "a.B"),
    (ConfigKind.PASSWORD, " x ", Password(" x ")),
    (ConfigKind.INT, None, None),
]
REFUSED = [
    (ConfigKind.BOOLEAN, "yes", "Expected value to be either true or false"),
    (ConfigKind.INT, "2147483648", "Not a number of type INT"),
    (ConfigKind.INT, "1_000", "Not a number of type INT"),
    (ConfigKind.INT, "", "Not a number of type INT"),
    (ConfigKind.INT, "٣", "Not a number of type INT"),
    (ConfigKind.SHORT, "32768", "Not a number of type SHORT"),
    (ConfigKind.DOUBLE, "x", "Not a number of type DOUBLE"),
]
# (kind, Kafka's type of it, a text that it takes, one that it refuses with the value that is shown, and why)
KINDS_OF_TEXTS = [
    (FILLED, "STRING", "x", "", "", "String must be non-empty"),
    (as_written("GET", "Post"), "STRING", "pOST", "x", "x", "String must be one of: GET, Post"),
    (read_as(int), "STRING", "007", "x", "x", r"invalid literal for int\(\) with base 10: 'x'"),
    (read_as(int, FILLED), "STRING", "7", "", "", "String must be non-empty"),
    (Checked(TEXT, check_pattern), "STRING", "a.*", "(", r"\(", "Invalid regular expression: .*"),
    (Checked(CLASS, names("A").parse), "CLASS", "A", "a", "a", "String must be one of: A"),
    (int_of(1), "INT", "1", "+00", "0", "Value must be at least 1"),
]
KEYS = (
    ConfigDef()
    .define("file", ConfigKind.STRING, REQUIRED, Importance.HIGH, "The file.", validator=non_empty, group="Files")
    .define("batch.size", ConfigKind.INT, 2000, Importance.LOW, "How many.", validator=between(1), group="Files")
    .define("topics", ConfigKind.LIST, [], Importance.MEDIUM, "Which.")
    .define(
        "password", ConfigKind.PASSWORD, None, Importance.LOW, "Which.", visible=lambda given: bool(given["topics"])
    )
    .define("mode", ConfigKind.STRING, "a", Importance.LOW, "Which.", recommender=lambda name, given: ["a", "b"])
    .define("secret.switch", ConfigKind.BOOLEAN, False, Importance.LOW, "Tests only.", internal=True)
)


def read_value(kind, text):
    return ConfigDef().define("k", kind, None, Importance.LOW, "").parse({"k": text})["k"]


@pytest.mark.parametrize(("kind", "text", "value"), READ)
def test_texts_are_read_by_their_kinds(kind, text, value):
    assert read_value(kind, text) == value


@pytest.mark.parametrize(("kind", "text", "why"), REFUSED)
def test_other_texts_are_refused_with_kafkas_sentence(kind, text, why):
    with pytest.raises(ConnectConfigError, match=rf"^Invalid value {text} for configuration k: {why}$"):
        read_value(kind, text)


@pytest.mark.parametrize(("kind", "type_", "taken", "refused", "shown", "why"), KINDS_OF_TEXTS)
def test_kinds_of_texts_keep_what_they_take_and_say_what_they_refuse(kind, type_, taken, refused, shown, why):
    assert type_of(kind) == type_
    assert str(read_value(kind, f" {taken} ")) == taken
    with pytest.raises(ConnectConfigError, match=rf"^Invalid value {shown} for configuration k: {why}$"):
        read_value(kind, refused)


def test_a_list_that_is_refused_is_shown_as_it_was_read():
    filled = Checked(TEXTS, lambda texts: names("a").parse(texts and texts[-1]))
    with pytest.raises(ConnectConfigError, match="Invalid value b for configuration k: String must be one of: a"):
        read_value(filled, "a, b")


def test_a_rule_that_says_all_itself_is_left_to_it():
    def refuse(text):
        raise ConnectConfigError(f"{text}, indeed")

    with pytest.raises(ConnectConfigError, match=r"^x, indeed$"):
        read_value(Checked(TEXT, refuse), "x")
    with pytest.raises(ConnectConfigError, match=r"^Invalid value x for configuration k: x, indeed$"):
        read_value(read_as(refuse), "x")


def test_kinds_by_kafkas_types():
    assert {kind: type_of(values) for kind, values in KINDS.items()} == {kind: kind for kind in ConfigKind}


def test_a_validator_is_asked_of_the_default_too():
    key = ConfigDef().define("k", ConfigKind.STRING, None, Importance.LOW, "", validator=one_of("a"))
    with pytest.raises(ConnectConfigError, match="Invalid value None for configuration k: String must be one of: a"):
        key.parse({})


def test_a_long_value_is_shown_in_part():
    with pytest.raises(ConnectConfigError) as refused:
        read_value(ConfigKind.INT, "x" * 100_000)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (None, None), ([], ""), (["a", "b"], "a,b"), (1, "1"), (Password("x"), "[hidden]")],
)
def test_values_are_written_as_connect_shows_them(value, text):
    assert written_value(value) == text


def test_a_password_is_in_no_text():
    assert "x" not in f"{Password('x')} {Password('x')!r}"
    assert Password("x").text == "x"
    assert {Password("x"), Password("x")} == {Password("x")} != {Password("y")}


def test_parse_gives_every_key_and_ignores_others():
    assert KEYS.parse({"file": "a", "batch.size": "5", "other": "1"}) == {
        "file": "a", "batch.size": 5, "topics": [], "password": None, "mode": "a", "secret.switch": False,
    }  # fmt: skip


def test_parse_refuses_what_is_missing_or_wrong():
    with pytest.raises(ConnectConfigError, match='Missing required configuration "file" which has no default value'):
        KEYS.parse({})
    with pytest.raises(ConnectConfigError, match="Value must be at least 1"):
        KEYS.parse({"file": "a", "batch.size": "0"})


def test_a_name_is_defined_once():
    with pytest.raises(ConnectConfigError, match="twice"):
        KEYS.with_keys([]).define("file", ConfigKind.STRING, "", Importance.LOW, "")
    assert KEYS.with_keys([KEYS["file"]])["file"] is KEYS["file"]


def test_validate_collects_all_errors():
    values = {value.name: value for value in KEYS.validate({"batch.size": "x", "password": "p"})}
    assert values["file"].errors == ['Missing required configuration "file" which has no default value.']
    assert values["batch.size"].errors == ["Invalid value x for configuration batch.size: Not a number of type INT"]
    assert (values["batch.size"].value, values["mode"].recommended) == ("x", ["a", "b"])
    assert (values["password"].visible, values["topics"].visible) == (False, True)


def test_the_answer_of_validate_has_connects_form():
    answer = validation_json("FileStream", KEYS, KEYS.validate({"batch.size": "5", "password": "p"}))
    assert (answer["name"], answer["error_count"], answer["groups"]) == ("FileStream", 1, ["Files"])
    found = {one["value"]["name"]: one for one in answer["configs"]}
    assert "secret.switch" not in found
    assert found["batch.size"] == {
        "definition": {
            "name": "batch.size", "type": "INT", "required": False, "default_value": "2000", "importance": "LOW",
            "documentation": "How many.", "group": "Files", "width": "NONE", "display_name": "batch.size",
            "dependents": [], "order": 2,
        },
        "value": {"name": "batch.size", "value": "5", "recommended_values": [], "errors": [], "visible": True},
    }  # fmt: skip
    assert found["file"]["definition"]["required"]
    assert found["file"]["definition"]["default_value"] is None
    assert found["password"]["value"]["value"] == "[hidden]"


CHECKS = [
    (between(1, 3), 1, None),
    (between(1, 3), None, None),
    (between(1, 3), 4, "no more than 3"),
    (one_of("a", "b"), "a", None),
    (one_of("a", "b"), "A", "String must be one of: a, b"),
    (one_of("a", "b", any_case=True), "A", None),
    (non_empty, "", "non-empty"),
    (non_empty, [], "non-empty"),
    (non_empty, None, None),
    (pattern, "a.*", None),
    (pattern, "(", "Invalid regular expression"),
    (all_of(non_empty, one_of("a")), "b", "one of"),
    (all_of(non_empty, one_of("a")), "", "non-empty"),
    (read_by(int), "1", None),
    (read_by(int), None, None),
    (read_by(int), "x", "invalid literal"),
]


@pytest.mark.parametrize(("check", "value", "why"), CHECKS)
def test_validators(check, value, why):
    if why is None:
        check("k", value)
    else:
        with pytest.raises(ConnectConfigError, match=why):
            check("k", value)


def test_orders_within_a_group_count_up_unless_given():
    keys = ConfigDef([config_key(name, ConfigKind.INT, 1, Importance.LOW, "", group="g") for name in "abc"])
    assert [key.order for key in keys] == [1, 2, 3]
    assert ConfigDef([config_key("a", ConfigKind.INT, 1, Importance.LOW, "")])["a"].order == -1

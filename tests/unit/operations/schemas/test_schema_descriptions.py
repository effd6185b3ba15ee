"""Subjects, versions and ids as values, for a sender that may read some of them; names, numbers and pages."""

import pytest
from support.registries import INT, LONG, TEXT, Registry, record, refused

from tidelog.operations.schemas.descriptions import (
    LATEST,
    describe_guid,
    describe_newest_with,
    describe_subjects,
    describe_versions,
    described,
    ids_of_guid,
    ids_that_reference,
    list_subjects,
    page,
    required_version,
    search_versions,
    version_number,
    version_of_id,
    versions_of_id,
)
from tidelog.operations.schemas.settings import decide_config, decide_no_config, decide_no_mode
from tidelog.operations.schemas.subjects import settings_place
from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.base.model import Reference, Schema, SchemaMetadata


@pytest.fixture
def registry():
    return Registry()


def everything(subject):
    return True


def but_secret(subject):
    return "secret" not in subject


def places(versions):
    return [(version.subject, version.version) for version in versions]


def test_subjects_with_their_newest_version(registry):
    registry.config(None, compatibility="NONE")
    registry.register("a", INT)
    registry.register("a", LONG)
    registry.register(":.c:secret", TEXT)
    found = describe_subjects(registry.state, everything)
    assert [(one.subject, one.versions, one.newest.text) for one in found] == [(":.c:secret", 1, TEXT), ("a", 2, LONG)]
    assert [one.subject for one in describe_subjects(registry.state, but_secret)] == ["a"]
    assert [one.text for one in describe_versions(registry.state, "a")] == [INT, LONG]
    with refused(40401):
        describe_versions(registry.state, "b")


def test_subjects_whose_versions_are_deleted(registry):
    registry.register("a", INT)
    registry.register("gone", INT)
    registry.delete_subject("gone")
    assert list_subjects(registry.state, everything) == ["a"]
    assert list_subjects(registry.state, everything, deleted=True) == ["a", "gone"]
    assert list_subjects(registry.state, everything, deleted_only=True) == ["gone"]
    (version,) = describe_versions(registry.state, "gone", deleted=True)
    assert version.deleted


def test_a_version_that_must_be_there(registry):
    registry.register("a", INT)
    assert required_version(registry.state, "a", LATEST).version == 1
    with refused(40402):
        required_version(registry.state, "a", 2)
    with refused(40401):
        required_version(registry.state, "b", LATEST)


def test_references_that_name_their_context(registry):
    registry.register(":.c:n", record(name="n"))
    registry.register(":.c:a", record("f"), references=[Reference("n", "n", 1)])
    version, referenced = (required_version(registry.state, name, 1) for name in (":.c:a", ":.c:n"))
    assert [one.subject for one in described(registry.state, version).references] == ["n"]
    assert [one.subject for one in described(registry.state, version, qualified=True).references] == [":.c:n"]
    assert ids_that_reference(registry.state, everything, referenced) == [2]
    assert ids_that_reference(registry.state, lambda _: False, referenced) == []


def test_the_newest_version_with_properties(registry):
    registry.config(None, compatibility="NONE")
    registry.register("a", INT, metadata=SchemaMetadata(properties={"team": "x", "owner": "y"}))
    registry.register("a", LONG, metadata=SchemaMetadata(properties={"team": "z"}))
    assert describe_newest_with(registry.state, "a", {}).version == 2
    assert describe_newest_with(registry.state, "a", {"team": "x"}).version == 1
    with refused(40402):
        describe_newest_with(registry.state, "a", {"team": "w"})
    with refused(40401):
        describe_newest_with(registry.state, "b", {})


def test_a_search_with_aliases(registry):
    registry.register("a", INT)
    registry.register("b", INT)
    for alias in ("other", "secret"):
        registry.config(alias, alias="a")
    found = search_versions(registry.state, but_secret, "", with_aliases=True)
    assert [(version.subject, list(aliases)) for version, aliases in found] == [("a", ["other"]), ("b", [])]
    (by_alias,) = search_versions(registry.state, everything, "oth", with_aliases=True)
    assert by_alias[0].subject == "a"


def test_an_id_is_found_where_the_sender_sees_it(registry):
    registry.register("a", INT)
    registry.register("secret", INT)
    registry.config("by-name", alias="secret")
    assert version_of_id(registry.state, everything, 1, ".").subject == "a"
    assert version_of_id(registry.state, everything, 1, ".", "by-name").subject == "secret"
    assert version_of_id(registry.state, but_secret, 1, ".", "secret").subject == "a"  # no more than a hint
    assert places(versions_of_id(registry.state, everything, 1, ".")) == [("a", 1), ("secret", 1)]
    assert places(versions_of_id(registry.state, but_secret, 1, ".")) == [("a", 1)]
    with refused(40403):
        version_of_id(registry.state, lambda _: False, 1, ".")


def test_a_subject_without_a_context_is_looked_for_in_all(registry):
    registry.register(":.c:a", INT)
    with refused(40403):
        version_of_id(registry.state, everything, 1, ".")
    assert version_of_id(registry.state, everything, 1, ".", "a").subject == ":.c:a"
    assert places(versions_of_id(registry.state, everything, 1, ".", "a")) == [(":.c:a", 1)]


def test_a_guid(registry):
    registry.register("a", INT)
    guid = Schema(INT).guid
    assert ids_of_guid(registry.state, everything, guid) == [(".", 1)]
    assert describe_guid(registry.state, everything, guid).text == INT
    for no_guid in ("no guid", Schema(LONG).guid):
        with refused(40403):
            ids_of_guid(registry.state, everything, no_guid)
    with refused(40403):
        ids_of_guid(registry.state, lambda _: False, guid)


def test_settings_say_what_was_set_and_what_counted(registry):
    set_, _ = decide_config(registry.state, "a", {"compatibility": "full", "normalize": True, "alias": None})
    assert set_ == {"compatibility": "FULL", "normalize": True}
    registry.config("a", compatibility="FULL")
    assert decide_no_config(registry.state, "a")[0] == {"compatibilityLevel": "FULL"}
    assert decide_no_mode(registry.state, None)[0] == "READWRITE"
    assert decide_no_mode(registry.state, "a", recursive=True)[0] is None


@pytest.mark.parametrize(
    ("text", "context", "place"),
    [("a", ".", "a"), ("a", ".c", ":.c:a"), (":.d:a", ".c", ":.d:a"), (":.c:", ".", ":.c:"), (":.:", ".", None)],
)
def test_where_settings_are_kept(text, context, place):
    assert settings_place(text, context) == place


def test_the_numbers_of_versions():
    assert [version_number(text) for text in ("1", "latest", "-1", "2147483647")] == [1, LATEST, LATEST, 2**31 - 1]
    for text in ("0", "-2", "2147483648", "newest", "1.0", "\u0663"):
        with pytest.raises(RegistryError, match="not a valid version id"):
            version_number(text)


def test_pages():
    assert page([1, 2, 3]) == [1, 2, 3]
    assert page([1, 2, 3], 1, 1) == [2]
    assert page([1, 2, 3], most=2) == [1, 2]
    assert page([1, 2, 3], 1, 5, most=2) == [2, 3]

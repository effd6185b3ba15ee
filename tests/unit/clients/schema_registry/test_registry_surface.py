"""What confluent_kafka.schema_registry calls by a name is called so here, and takes its arguments in the same order.

The installed package is walked: `NOT_HERE` has what is missing here, with the reason.
"""

import inspect
from enum import Enum
from importlib import import_module

import pytest

THEIRS, OURS = "confluent_kafka.schema_registry", "tidelog.schema_registry"
MODULES = ("", ".avro", ".json_schema", ".protobuf")
# Names of modules, and members of classes, with the reason.
NOT_HERE = {
    # Experimental in confluent-kafka; a serializer is built in one line, and a client's `serdes` takes functions.
    **{
        f"{kind}{way}{what}Builder": "experimental"
        for kind in ("", "Async")
        for way in ("Avro", "JSON", "Protobuf")
        for what in ("Serializer", "Deserializer")
    },
}


def public(module):
    """A module's classes and functions that it defines or hands on, by `__all__` where there is one."""
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    for name in names:
        given = getattr(module, name)
        inside = str(getattr(given, "__module__", ""))
        if inside.startswith(THEIRS) and callable(given) and not name.startswith("_"):
            yield name, given


NAMES = [
    (part, name, given)
    for part in MODULES
    for name, given in public(import_module(THEIRS + part))
    if name not in NOT_HERE and (not part or name.endswith(("Serializer", "Deserializer")))
]


def here(part, name):
    return getattr(import_module(OURS + part), name)


@pytest.mark.parametrize(("part", "name", "given"), NAMES, ids=[f"{part}.{name}" for part, name, _ in NAMES])
def test_it_is_here_with_its_members(part, name, given):
    own = here(part, name)
    if not isinstance(given, type):
        return
    if issubclass(given, Enum):
        assert {one.name: one.value for one in own} == {one.name: one.value for one in given}
        return
    plain = set(dir(Exception)) if issubclass(given, Exception) else set()
    wanted = {one for one in dir(given) if not one.startswith("_")} - plain
    # Of serializers: experimental, for builders' clients and for rules.
    inner = {
        "own_schema_registry_client",
        "set_cluster_id_resolver",
        "set_async_cluster_id_resolver",
        "close",
        "aclose",
    }
    inner |= {one for one in wanted if one.startswith("configure_")}
    if part:
        wanted -= inner
    members = {*dir(own), *getattr(own, "__dataclass_fields__", {})}
    assert wanted - members == set()


CALLS = [
    (part, name, method)
    for part, name, given in NAMES
    if not (isinstance(given, type) and issubclass(given, Enum))
    for method in (
        ["", *(one for one, _ in inspect.getmembers(given, inspect.isfunction) if not one.startswith("_"))]
        if isinstance(given, type)
        else [""]
    )
    if hasattr(here(part, name), method or "__call__") or not method
]


def taken(owner, method):
    """The names of what a call takes, in order, and those that may be left out."""
    function = getattr(owner, method) if method else owner
    if not method and isinstance(owner, type):
        function = getattr(owner, f"_{owner.__name__}__init_impl", owner.__init__)
    found = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    return [(one.name.lstrip("_"), one.default is not one.empty) for one in found if one.kind.value in (0, 1)]


@pytest.mark.parametrize(("part", "name", "method"), CALLS, ids=[f"{p}.{n}.{m}" for p, n, m in CALLS])
def test_it_takes_the_same_arguments(part, name, method):
    theirs = taken(getattr(import_module(THEIRS + part), name), method)
    ours = taken(here(part, name), method)
    assert [one for one, _ in ours][: len(theirs)] == [one for one, _ in theirs]
    for (argument, optional), (_, may_be_left_out) in zip(theirs, ours, strict=False):
        assert may_be_left_out or not optional, argument
    assert all(optional for _, optional in ours[len(theirs) :])


def test_the_walk_finds_what_there_is():
    found = {name for _, name, _ in NAMES}
    assert {"SchemaRegistryClient", "AsyncSchemaRegistryClient", "AsyncAvroSerializer", "RuleSet"} <= found
    assert len(NAMES) > 35
    assert len(CALLS) > 120

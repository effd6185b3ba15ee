"""What confluent-kafka calls by a name is called so here, and takes its arguments by the same names.

`vectors/confluent_surface.json` is the surface of confluent-kafka 2.16.1, recorded by `support/confluent_surface.py`,
which says what it holds. NOT_HERE has what is missing here, with the reason.
"""

import inspect
import json
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from support.confluent_surface import surface, text

RECORDED = Path(__file__).parents[1] / "vectors" / "confluent_surface.json"
SURFACE: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
RECORDED_VERSION = "2.16.1"

NOT_HERE = {
    # there are no share groups
    *(f"tidelog.{name}" for name in ("AcknowledgeType", "Messages", "ShareConsumer", "DeserializingShareConsumer")),
    *(f"tidelog.{name}" for name in ("ConcurrentModificationException", "IllegalStateException")),
    "tidelog.ThrottleEvent",  # no broker slows a client down
    "tidelog.admin.AdminClient.__len__",  # an AdminClient has no callbacks that could wait
}
NOT_TAKEN = {
    ("tidelog.Message", "delivery_count"),  # only share groups count deliveries
    ("tidelog.admin.OffsetSpec", "index"),  # its class methods make one
}

NAMES = [
    (f"{module}.{name}", given)
    for module, names in SURFACE.items()
    for name, given in names.items()
    if f"{module}.{name}" not in NOT_HERE
]


def found(path: str) -> Any:
    module = max((name for name in SURFACE if path.startswith(f"{name}.")), key=len)
    return getattr(import_module(module), path.removeprefix(f"{module}."))


def with_attributes(path: str) -> Any:
    """The class, or an object of it where its attributes are only an object's."""
    made: dict[str, tuple[Any, ...]] = {
        "tidelog.TopicPartition": ("t",),
        "tidelog.admin.NewTopic": ("t",),
        "tidelog.admin.NewPartitions": ("t", 2),
    }
    return found(path)(*made[path]) if path in made else found(path)


@pytest.mark.parametrize(("path", "given"), NAMES, ids=[path for path, _ in NAMES])
def test_it_is_here_with_all_its_members(path: str, given: Any) -> None:
    has = with_attributes(path)
    members = given if isinstance(given, dict) else {}
    missing = {name for name in members if name and not hasattr(has, name)}
    assert {name for name in missing if f"{path}.{name}" not in NOT_HERE} == set()


CALLS = [
    (path, name, taken)
    for path, given in NAMES
    for name, taken in (given.items() if isinstance(given, dict) else {"": given}.items())
    if isinstance(taken, list) and f"{path}.{name}" not in NOT_HERE
]


@pytest.mark.parametrize(("path", "name", "taken"), CALLS, ids=[f"{path}.{name}" for path, name, _ in CALLS])
def test_it_takes_the_same_arguments(path: str, name: str, taken: list[list[Any]]) -> None:
    owner = found(path)
    wanted = [one for one in taken if (path, one[0]) not in NOT_TAKEN]
    try:
        signature = inspect.signature(getattr(owner, name) if name else owner)
    except ValueError:  # an exception takes whatever it is given
        assert issubclass(owner, Exception)
        return
    own = [p for p in signature.parameters.values() if p.name != "self" or not name]
    for at, (argument, kind) in enumerate(wanted):
        positional = kind != "keyword"
        ours = own[at] if positional else signature.parameters.get(argument)
        assert ours is not None, f"{argument} is not taken"
        assert ours.name == argument or ours.kind is inspect.Parameter.POSITIONAL_ONLY
        assert not positional or ours.kind is not inspect.Parameter.KEYWORD_ONLY
        assert kind is False or ours.default is not inspect.Parameter.empty, f"{argument} has no default"
    known = {argument for argument, _ in wanted}
    needed = [p.name for p in own if p.default is inspect.Parameter.empty and p.kind in _NAMED and p.name not in known]
    assert needed == [] or path in MADE_BY_TIDELOG


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
MADE_BY_TIDELOG = {"tidelog.admin.GroupMember", "tidelog.admin.GroupMetadata", "tidelog.admin.OffsetSpec"}


def test_what_is_not_here_was_recorded() -> None:
    every = {f"{module}.{name}" for module, names in SURFACE.items() for name in names}
    every |= {f"{path}.{name}" for path, given in NAMES if isinstance(given, dict) for name in given}
    assert every >= NOT_HERE


def test_the_table_is_that_of_the_installed_package() -> None:
    """Where the benchmarks' extra brings confluent-kafka in the recorded version."""
    try:
        if version("confluent-kafka") != RECORDED_VERSION:
            pytest.skip("another version of confluent-kafka is installed")
    except PackageNotFoundError:
        pytest.skip("confluent-kafka is not installed")
    assert text(surface()) == RECORDED.read_text(encoding="utf-8")

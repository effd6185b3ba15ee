"""Associations of subjects with topics, which Confluent's own registry has: what its clients send and get."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

from tidelog.clients.schema_registry.model import Schema

L = TypeVar("L")


class _Associated:
    """A class whose fields have the API's names in camel case."""

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """Of the API's form."""
        given = {one.name: found[_camel(one.name)] for one in fields(cls) if _camel(one.name) in found}  # type: ignore[arg-type] # each below is a dataclass
        if given.get("schema") is not None:
            given["schema"] = Schema.from_dict(given["schema"])
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """As the API has it: what is set."""
        found = {_camel(one.name): getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type] # as above
        return {key: _plain(value) for key, value in found.items() if value is not None}


@dataclass
class Association(_Associated):
    """An association of a subject with a resource."""

    subject: str | None = None
    guid: str | None = None
    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    association_type: str | None = None
    frozen: bool = False


@dataclass
class AssociationInfo(_Associated):
    """An association, as an answer names it."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool = False
    schema: Schema | None = None


@dataclass
class AssociationCreateOrUpdateInfo(_Associated):
    """An association that is asked for."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: Schema | None = None
    normalize: bool | None = None


@dataclass
class AssociationCreateOrUpdateRequest(_Associated):
    """Associations that are asked for, of one resource."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationCreateOrUpdateInfo] | None = None

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """Of the API's form."""
        return _with_list(super().from_dict(found), AssociationCreateOrUpdateInfo)


@dataclass
class AssociationResponse(_Associated):
    """Associations of one resource."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationInfo] | None = None

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """Of the API's form."""
        return _with_list(super().from_dict(found), AssociationInfo)


def _with_list(made: L, kind: type[_Associated]) -> L:
    listed: Any = made
    if listed.associations is not None:
        listed.associations = [kind.from_dict(one) for one in listed.associations]
    return made


def _camel(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.to_dict() if hasattr(value, "to_dict") else value

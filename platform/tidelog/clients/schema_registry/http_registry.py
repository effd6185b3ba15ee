"""A registry at an address: requests of Confluent's API, and what their answers say."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tidelog.clients.schema_registry.model import RegisteredSchema, Schema, SchemaVersion
from tidelog.clients.schema_registry.transports import HttpTransport


class HttpRegistry:
    """Asks a registry over HTTP. All methods raise as `HttpTransport.send` does."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport
        self.send = transport.send
        self.close = transport.close

    # --- schemas -------------------------------------------------------------------------------------------

    def register(self, subject: str, schema: Schema, *, normalize: bool) -> RegisteredSchema:
        """Register a schema; its version."""
        path, query = f"/subjects/{path_part(subject)}/versions", _flags(normalize=normalize)
        answer = self.send("POST", path, query, schema.to_dict())
        return RegisteredSchema.from_dict({"subject": subject, **schema.to_dict(), **answer})

    def schema(self, number: int, subject: str | None, fmt: str | None, reference_format: str | None) -> Schema:
        """The schema of an id."""
        query = given(subject=subject, format=fmt, referenceFormat=reference_format)
        return Schema.from_dict(self.send("GET", f"/schemas/ids/{number}", query))

    def schema_of_guid(self, guid: str, fmt: str | None) -> Schema:
        """The schema of a guid."""
        return Schema.from_dict(self.send("GET", f"/schemas/guids/{path_part(guid)}", given(format=fmt)))

    def look_up(
        self, subject: str, schema: Schema, fmt: str | None, *, normalize: bool, deleted: bool
    ) -> RegisteredSchema:
        """The version that a schema has in a subject."""
        query = _flags(normalize=normalize, deleted=deleted) | given(format=fmt)
        answer = self.send("POST", f"/subjects/{path_part(subject)}", query, schema.to_dict())
        return RegisteredSchema.from_dict(answer)

    def types(self) -> list[str]:
        """The types of schemas."""
        found: list[str] = self.send("GET", "/schemas/types", {})
        return found

    def subjects_of_id(self, number: int, subject: str | None, offset: int, limit: int, *, deleted: bool) -> list[str]:
        """The subjects that have an id's schema."""
        query = given(subject=subject) | _flags(deleted=deleted) | paged(offset, limit)
        found: list[str] = self.send("GET", f"/schemas/ids/{number}/subjects", query)
        return found

    def versions_of_id(
        self, number: int, subject: str | None, offset: int, limit: int, *, deleted: bool
    ) -> list[SchemaVersion]:
        """The subjects and versions that have an id's schema."""
        query = given(subject=subject) | _flags(deleted=deleted) | paged(offset, limit)
        return [SchemaVersion.from_dict(one) for one in self.send("GET", f"/schemas/ids/{number}/versions", query)]

    # --- subjects and versions -----------------------------------------------------------------------------

    def subjects(self, prefix: str | None, offset: int, limit: int, *, deleted: bool, deleted_only: bool) -> list[str]:
        """Subjects, sorted."""
        query = given(subjectPrefix=prefix) | _flags(deleted=deleted, deletedOnly=deleted_only)
        found: list[str] = self.send("GET", "/subjects", query | paged(offset, limit))
        return found

    def version(self, subject: str, version: int | str, fmt: str | None, *, deleted: bool) -> RegisteredSchema:
        """A version of a subject."""
        query = given(format=fmt) | _flags(deleted=deleted)
        return RegisteredSchema.from_dict(self.send("GET", _version_path(subject, version), query))

    def newest_with(
        self, subject: str, properties: Mapping[str, str], fmt: str | None, *, deleted: bool
    ) -> RegisteredSchema:
        """A subject's newest version with these properties."""
        query: dict[str, Any] = given(format=fmt) | _flags(deleted=deleted)
        if properties:
            query |= {"key": [*properties], "value": [*properties.values()]}
        return RegisteredSchema.from_dict(self.send("GET", f"/subjects/{path_part(subject)}/metadata", query))

    def versions(self, subject: str, offset: int, limit: int, *, deleted: bool, deleted_only: bool) -> list[int]:
        """The numbers of a subject's versions, oldest first."""
        query = _flags(deleted=deleted, deletedOnly=deleted_only) | paged(offset, limit)
        found: list[int] = self.send("GET", f"/subjects/{path_part(subject)}/versions", query)
        return found

    def referenced_by(self, subject: str, version: int | str, offset: int, limit: int) -> list[int]:
        """Ids of the schemas that reference a version."""
        path = f"{_version_path(subject, version)}/referencedby"
        found: list[int] = self.send("GET", path, paged(offset, limit))
        return found

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Delete a subject; the versions that were deleted."""
        found: list[int] = self.send("DELETE", f"/subjects/{path_part(subject)}", _flags(permanent=permanent))
        return found

    def delete_version(self, subject: str, version: int, *, permanent: bool) -> int:
        """Delete a version; its number."""
        found: int = self.send("DELETE", _version_path(subject, version), _flags(permanent=permanent))
        return found

    def contexts(self, offset: int, limit: int) -> list[str]:
        """The contexts."""
        found: list[str] = self.send("GET", "/contexts", paged(offset, limit))
        return found

    # --- settings; of a subject, or of all (None) ----------------------------------------------------------

    def incompatibilities(
        self, subject: str, schema: Schema, version: int | str | None, *, normalize: bool, verbose: bool
    ) -> list[str]:
        """What of a schema is not compatible with a version, or, for None, as a registration is tested."""
        path = f"/subjects/{path_part(subject)}/versions" if version is None else _version_path(subject, version)
        query = _flags(normalize=normalize, verbose=verbose)
        answer = self.send("POST", f"/compatibility{path}", query, schema.to_dict())
        messages: list[str] = answer.get("messages") or []
        return [] if answer["is_compatible"] else messages or ["The schema is not compatible."]

    def config(self, subject: str | None, *, in_force: bool = False) -> Mapping[str, Any]:
        """A configuration; `in_force`: also where it is that of all."""
        found: Mapping[str, Any] = self.send("GET", _setting_path("config", subject), _flags(defaultToGlobal=in_force))
        return found

    def set_config(self, subject: str | None, change: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set what a change names; what was set."""
        found: Mapping[str, Any] = self.send("PUT", _setting_path("config", subject), {}, change)
        return found

    def delete_config(self, subject: str | None) -> Mapping[str, Any]:
        """Take a configuration away; what counted before."""
        found: Mapping[str, Any] = self.send("DELETE", _setting_path("config", subject), {})
        return found

    def mode(self, subject: str | None, *, in_force: bool = False) -> str:
        """A mode; `in_force`: also where it is that of all."""
        return str(self.send("GET", _setting_path("mode", subject), _flags(defaultToGlobal=in_force))["mode"])

    def set_mode(self, subject: str | None, mode: str, *, force: bool) -> str:
        """Set a mode."""
        return str(self.send("PUT", _setting_path("mode", subject), _flags(force=force), {"mode": mode})["mode"])

    def delete_mode(self, subject: str | None) -> str:
        """Take a mode away; what counted before."""
        return str(self.send("DELETE", _setting_path("mode", subject), {})["mode"])


def path_part(text: str) -> str:
    """A part of a path, in which nothing of it counts as a separator."""
    return quote(text, safe="")


def _version_path(subject: str, version: int | str) -> str:
    return f"/subjects/{path_part(subject)}/versions/{path_part(str(version))}"


def _setting_path(kind: str, subject: str | None) -> str:
    return f"/{kind}" if subject is None else f"/{kind}/{path_part(subject)}"


def _flags(**given: bool) -> dict[str, str]:
    return {key: "true" for key, value in given.items() if value}


def given(**texts: str | None) -> dict[str, str]:
    """The parameters of a query that have a value."""
    return {key: value for key, value in texts.items() if value is not None}


def paged(offset: int, limit: int) -> dict[str, str]:
    """The parameters of a query that ask for a part of a list."""
    return {
        key: str(value) for key, value, default in (("offset", offset, 0), ("limit", limit, -1)) if value != default
    }

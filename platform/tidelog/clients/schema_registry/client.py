"""A client of schema registries, in the shape of confluent-kafka's SchemaRegistryClient."""

import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from tidelog.clients.schema_registry.associations import (
    Association,
    AssociationCreateOrUpdateRequest,
    AssociationResponse,
)
from tidelog.clients.schema_registry.model import RegisteredSchema, Schema, SchemaVersion
from tidelog.clients.schema_registry.settings import ClientSettings
from tidelog.clients.schema_registry.settings_calls import SettingsCalls, flags, path_part
from tidelog.clients.schema_registry.transports import HttpTransport, LakeTransport, Transport
from tidelog.log.base.clock import Clock, Ids, SystemClock
from tidelog.log.lake import Lake

V = TypeVar("V")


class SchemaRegistryClient(SettingsCalls):
    """Talks to a registry. All methods may be called from many threads, and raise `SchemaRegistryError`.

    `conf`: `url` of a server, or several with commas between; or `lake`, an opened `Lake` or its address, which needs
    no server, and `topic` of its schemas, `_schemas`. `timeout` of a request in seconds, 30; `max.retries` of each URL,
    3, with `retries.wait.ms`, 1000, which doubles up to `retries.max.wait.ms`, 20000. Logs in by `basic.auth.user.info`
    (user:password), a certificate (`ssl.certificate.location`, `ssl.key.location`, `ssl.key.password`) or a token
    (`bearer.auth.credentials.source` and the keys of it). `ssl.ca.location`, `proxy`. What never changes once it is
    there, an id's schema, is asked for once, and kept: `cache.capacity`, 1000, of each kind, those that were asked for
    first go first; a newest version is kept for `cache.latest.ttl.sec`, and is asked for each time without it.
    """

    def __init__(self, conf: Mapping[str, Any], clock: Clock | None = None, ids: Ids | None = None) -> None:
        settings = ClientSettings.of(conf)
        self._conf = dict(conf)
        self._clock = clock or SystemClock()
        self._transport = _transport(settings, self._clock, ids)
        self.latest_ttl_s = settings.latest_ttl_s
        self._lock = threading.Lock()
        self._schemas: BoundedCache[Schema] = BoundedCache(settings.capacity, self._lock)
        self._ids: BoundedCache[RegisteredSchema] = BoundedCache(settings.capacity, self._lock)
        self._newest: BoundedCache[tuple[float, RegisteredSchema]] = BoundedCache(settings.capacity, self._lock)

    def config(self) -> dict[str, Any]:
        """The configuration that the client was given."""
        return self._conf

    def elapsed_s(self) -> float:
        """The seconds by which what is kept for a time is measured."""
        return self._clock.elapsed_s()

    def close(self) -> None:
        """Give back connections, or the lake where it was opened for this client."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    # --- schemas -------------------------------------------------------------------------------------------

    def register_schema(self, subject_name: str, schema: Schema, normalize_schemas: bool = False) -> int:
        """Register a schema; its id."""
        found = self.register_schema_full_response(subject_name, schema, normalize_schemas)
        return _number(found.schema_id)

    def register_schema_full_response(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False
    ) -> RegisteredSchema:
        """Register a schema; its version. The same again in the same subject is asked for once."""
        key = (subject_name, schema, normalize_schemas)
        known = self._ids.get(key)
        if known is None:
            path, query = f"/subjects/{path_part(subject_name)}/versions", flags(normalize=normalize_schemas)
            answer = self._transport.send("POST", path, query, schema.to_dict())
            known = RegisteredSchema.from_dict({"subject": subject_name, **schema.to_dict(), **answer})
            self._ids.keep(key, known)
            self.clear_latest_caches()
        return known

    def get_schema(
        self,
        schema_id: int,
        subject_name: str | None = None,
        fmt: str | None = None,
        reference_format: str | None = None,
    ) -> Schema:
        """The schema of an id. `fmt`: "resolved" or "serialized", as the API has them."""
        query = _given(subject=subject_name, format=fmt, referenceFormat=reference_format)
        return self._schema(f"/schemas/ids/{schema_id}", query)

    def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        """The schema of a guid."""
        return self._schema(f"/schemas/guids/{path_part(guid)}", _given(format=fmt))

    def _schema(self, path: str, query: dict[str, str]) -> Schema:
        key = (path, *query.items())
        known = self._schemas.get(key)
        if known is None:
            known = Schema.from_dict(self._transport.send("GET", path, query))
            self._schemas.keep(key, known)
        return known

    def lookup_schema(
        self,
        subject_name: str,
        schema: Schema,
        normalize_schemas: bool = False,
        fmt: str | None = None,
        deleted: bool = False,
    ) -> RegisteredSchema:
        """The version that a schema has in a subject."""
        query = flags(normalize=normalize_schemas, deleted=deleted) | _given(format=fmt)
        return _registered(
            self._transport.send("POST", f"/subjects/{path_part(subject_name)}", query, schema.to_dict())
        )

    def get_schema_types(self) -> list[str]:
        """The types that the registry takes."""
        found: list[str] = self._transport.send("GET", "/schemas/types", {})
        return found

    # --- subjects and versions -----------------------------------------------------------------------------

    def get_subjects(
        self,
        subject_prefix: str | None = None,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        """Subjects, sorted."""
        query = _given(subjectPrefix=subject_prefix) | flags(deleted=deleted, deletedOnly=deleted_only)
        found: list[str] = self._transport.send("GET", "/subjects", query | _page(offset, limit))
        return found

    def get_subjects_by_schema_id(
        self, schema_id: int, subject_name: str | None = None, deleted: bool = False, offset: int = 0, limit: int = -1
    ) -> list[str]:
        """The subjects that have an id's schema."""
        query = _given(subject=subject_name) | flags(deleted=deleted) | _page(offset, limit)
        found: list[str] = self._transport.send("GET", f"/schemas/ids/{schema_id}/subjects", query)
        return found

    def get_schema_versions(
        self, schema_id: int, subject_name: str | None = None, deleted: bool = False, offset: int = 0, limit: int = -1
    ) -> list[SchemaVersion]:
        """The subjects and versions that have an id's schema."""
        query = _given(subject=subject_name) | flags(deleted=deleted) | _page(offset, limit)
        found = self._transport.send("GET", f"/schemas/ids/{schema_id}/versions", query)
        return [SchemaVersion.from_dict(one) for one in found]

    def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        """A subject's newest version."""
        path = f"/subjects/{path_part(subject_name)}/versions/latest"
        return self._latest(path, _given(format=fmt))

    def get_latest_with_metadata(
        self, subject_name: str, metadata: Mapping[str, str], deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """A subject's newest version with these properties."""
        query: dict[str, Any] = _given(format=fmt) | flags(deleted=deleted)
        if metadata:
            query |= {"key": [*metadata], "value": [*metadata.values()]}
        return self._latest(f"/subjects/{path_part(subject_name)}/metadata", query)

    def _latest(self, path: str, query: Mapping[str, Any]) -> RegisteredSchema:
        if self.latest_ttl_s is None:
            return _registered(self._transport.send("GET", path, query))
        key, now_s = (path, str(query)), self._clock.elapsed_s()
        known = self._newest.get(key)
        if known is None or now_s >= known[0] + self.latest_ttl_s:
            known = now_s, _registered(self._transport.send("GET", path, query))
            self._newest.keep(key, known)
        return known[1]

    def get_version(
        self, subject_name: str, version: int | str = "latest", deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """A version of a subject."""
        path, query = f"/subjects/{path_part(subject_name)}/versions/{path_part(str(version))}", _given(format=fmt)
        return _registered(self._transport.send("GET", path, query | flags(deleted=deleted)))

    def get_versions(
        self, subject_name: str, deleted: bool = False, deleted_only: bool = False, offset: int = 0, limit: int = -1
    ) -> list[int]:
        """The numbers of a subject's versions, oldest first."""
        query = flags(deleted=deleted, deletedOnly=deleted_only) | _page(offset, limit)
        found: list[int] = self._transport.send("GET", f"/subjects/{path_part(subject_name)}/versions", query)
        return found

    def get_referenced_by(
        self, subject_name: str, version: int | str = "latest", offset: int = 0, limit: int = -1
    ) -> list[int]:
        """Ids of the schemas that reference a version."""
        path = f"/subjects/{path_part(subject_name)}/versions/{path_part(str(version))}/referencedby"
        found: list[int] = self._transport.send("GET", path, _page(offset, limit))
        return found

    def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """Delete a subject softly, with `permanent` for good, after a soft delete; the versions that were deleted."""
        path = f"/subjects/{path_part(subject_name)}"
        found: list[int] = self._transport.send("DELETE", path, flags(permanent=permanent))
        self.clear_caches()
        return found

    def delete_version(self, subject_name: str, version: int, permanent: bool = False) -> int:
        """Delete a version softly, with `permanent` for good; its number."""
        path = f"/subjects/{path_part(subject_name)}/versions/{version}"
        found: int = self._transport.send("DELETE", path, flags(permanent=permanent))
        self.clear_caches()
        return found

    def get_contexts(self, offset: int = 0, limit: int = -1) -> list[str]:
        """The contexts."""
        found: list[str] = self._transport.send("GET", "/contexts", _page(offset, limit))
        return found

    def clear_caches(self) -> None:
        """Forget what was asked for once."""
        for kept in (self._schemas, self._ids, self._newest):
            kept.clear()

    def clear_latest_caches(self) -> None:
        """Forget the newest versions that were asked for."""
        self._newest.clear()

    # --- associations, which Confluent's own registry has -----------------------------------------------------

    def get_associations_by_resource_name(
        self,
        resource_name: str,
        resource_namespace: str,
        resource_type: str | None = None,
        association_types: Sequence[str] | None = None,
        offset: int = 0,
        limit: int = -1,
    ) -> list[Association]:
        """The associations of a resource, such as a topic. `resource_namespace`: a cluster's id, or "-" for any."""
        query = {**_given(resourceType=resource_type), **_page(offset, limit), **_types(association_types)}
        path = f"/associations/resources/{path_part(resource_namespace)}/{path_part(resource_name)}"
        return [Association.from_dict(one) for one in self._transport.send("GET", path, query)]

    def create_association(self, request: AssociationCreateOrUpdateRequest) -> AssociationResponse:
        """Associate subjects with a resource."""
        return AssociationResponse.from_dict(self._transport.send("POST", "/associations", {}, request.to_dict()))

    def delete_associations(
        self,
        resource_id: str,
        resource_type: str | None = None,
        association_types: Sequence[str] | None = None,
        cascade_lifecycle: bool = False,
    ) -> None:
        """Take associations of a resource away."""
        cascade = {"cascadeLifecycle": str(cascade_lifecycle).lower()}
        query = {**cascade, **_given(resourceType=resource_type), **_types(association_types)}
        self._transport.send("DELETE", f"/associations/resources/{path_part(resource_id)}", query)

    @staticmethod
    def new_client(conf: Mapping[str, Any]) -> "SchemaRegistryClient":
        """A client."""
        return SchemaRegistryClient(conf)


class BoundedCache(Generic[V]):
    """What is known, up to a number of it: what came first goes first."""

    def __init__(self, capacity: int, lock: threading.Lock) -> None:
        self._found: dict[tuple[Any, ...], V] = {}
        self._capacity = capacity
        self._lock = lock

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: tuple[Any, ...]) -> V | None:
        """What is known under a key."""
        return self._found.get(key)

    def keep(self, key: tuple[Any, ...], value: V) -> None:
        """Know it from now on."""
        with self._lock:
            self._found[key] = value
            while len(self._found) > self._capacity:
                del self._found[next(iter(self._found))]

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._found.clear()


def _transport(settings: ClientSettings, clock: Clock, ids: Ids | None) -> Transport:
    if settings.http is not None:
        return HttpTransport(settings.http, clock, ids)
    if isinstance(settings.lake, Lake):
        return LakeTransport(settings.lake, settings.topic)
    return LakeTransport(Lake(settings.lake), settings.topic, owned=True)


def _types(given: Sequence[str] | None) -> dict[str, list[str]]:
    return {"associationType": [*given]} if given else {}


def _given(**texts: str | None) -> dict[str, str]:
    return {key: value for key, value in texts.items() if value is not None}


def _page(offset: int, limit: int) -> dict[str, str]:
    return {
        key: str(value) for key, value, default in (("offset", offset, 0), ("limit", limit, -1)) if value != default
    }


def _registered(answer: Any) -> RegisteredSchema:
    return RegisteredSchema.from_dict(answer)


def _number(value: int | None) -> int:
    if value is None:
        raise ValueError("the registry gave no id")
    return value

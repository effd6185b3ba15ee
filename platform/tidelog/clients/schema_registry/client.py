"""A client of schema registries, in the shape of confluent-kafka's SchemaRegistryClient."""

import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from tidelog.clients.schema_registry.associations import (
    Association,
    AssociationCreateOrUpdateRequest,
    AssociationResponse,
)
from tidelog.clients.schema_registry.http_registry import HttpRegistry, given, paged, path_part
from tidelog.clients.schema_registry.lake_registry import LakeRegistry
from tidelog.clients.schema_registry.model import RegisteredSchema, Schema, SchemaVersion
from tidelog.clients.schema_registry.settings import ClientSettings
from tidelog.clients.schema_registry.settings_calls import SettingsCalls
from tidelog.clients.schema_registry.transports import HttpTransport
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
        self._registry = _registry(settings, self._clock, ids)
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
        self._registry.close()

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
        version = self._ids.get(key)
        if version is None:
            version = self._registry.register(subject_name, schema, normalize=normalize_schemas)
            self._ids.keep(key, version)
            self.clear_latest_caches()
        return version

    def get_schema(
        self,
        schema_id: int,
        subject_name: str | None = None,
        fmt: str | None = None,
        reference_format: str | None = None,
    ) -> Schema:
        """The schema of an id. `fmt`: "resolved" or "serialized", as the API has them."""
        key = (schema_id, subject_name, fmt, reference_format)
        return self._schema(key, lambda: self._registry.schema(schema_id, subject_name, fmt, reference_format))

    def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        """The schema of a guid."""
        return self._schema((guid, fmt), lambda: self._registry.schema_of_guid(guid, fmt))

    def _schema(self, key: tuple[Any, ...], ask: Callable[[], Schema]) -> Schema:
        schema = self._schemas.get(key)
        if schema is None:
            schema = ask()
            self._schemas.keep(key, schema)
        return schema

    def lookup_schema(
        self,
        subject_name: str,
        schema: Schema,
        normalize_schemas: bool = False,
        fmt: str | None = None,
        deleted: bool = False,
    ) -> RegisteredSchema:
        """The version that a schema has in a subject."""
        return self._registry.look_up(subject_name, schema, fmt, normalize=normalize_schemas, deleted=deleted)

    def get_schema_types(self) -> list[str]:
        """The types that the registry takes."""
        return self._registry.types()

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
        return self._registry.subjects(subject_prefix, offset, limit, deleted=deleted, deleted_only=deleted_only)

    def get_subjects_by_schema_id(
        self, schema_id: int, subject_name: str | None = None, deleted: bool = False, offset: int = 0, limit: int = -1
    ) -> list[str]:
        """The subjects that have an id's schema."""
        return self._registry.subjects_of_id(schema_id, subject_name, offset, limit, deleted=deleted)

    def get_schema_versions(
        self, schema_id: int, subject_name: str | None = None, deleted: bool = False, offset: int = 0, limit: int = -1
    ) -> list[SchemaVersion]:
        """The subjects and versions that have an id's schema."""
        return self._registry.versions_of_id(schema_id, subject_name, offset, limit, deleted=deleted)

    def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        """A subject's newest version."""
        return self._latest(
            (subject_name, fmt), lambda: self._registry.version(subject_name, "latest", fmt, deleted=False)
        )

    def get_latest_with_metadata(
        self, subject_name: str, metadata: Mapping[str, str], deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """A subject's newest version with these properties."""
        return self._latest(
            (subject_name, fmt, tuple(sorted(metadata.items())), deleted),
            lambda: self._registry.newest_with(subject_name, metadata, fmt, deleted=deleted),
        )

    def _latest(self, key: tuple[Any, ...], ask: Callable[[], RegisteredSchema]) -> RegisteredSchema:
        if self.latest_ttl_s is None:
            return ask()
        entry, now_s = self._newest.get(key), self._clock.elapsed_s()
        if entry is None or now_s >= entry[0] + self.latest_ttl_s:
            entry = now_s, ask()
            self._newest.keep(key, entry)
        return entry[1]

    def get_version(
        self, subject_name: str, version: int | str = "latest", deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """A version of a subject."""
        return self._registry.version(subject_name, version, fmt, deleted=deleted)

    def get_versions(
        self, subject_name: str, deleted: bool = False, deleted_only: bool = False, offset: int = 0, limit: int = -1
    ) -> list[int]:
        """The numbers of a subject's versions, oldest first."""
        return self._registry.versions(subject_name, offset, limit, deleted=deleted, deleted_only=deleted_only)

    def get_referenced_by(
        self, subject_name: str, version: int | str = "latest", offset: int = 0, limit: int = -1
    ) -> list[int]:
        """Ids of the schemas that reference a version."""
        return self._registry.referenced_by(subject_name, version, offset, limit)

    def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """Delete a subject softly, with `permanent` for good, after a soft delete; the versions that were deleted."""
        found = self._registry.delete_subject(subject_name, permanent=permanent)
        self.clear_caches()
        return found

    def delete_version(self, subject_name: str, version: int, permanent: bool = False) -> int:
        """Delete a version softly, with `permanent` for good; its number."""
        found = self._registry.delete_version(subject_name, version, permanent=permanent)
        self.clear_caches()
        return found

    def get_contexts(self, offset: int = 0, limit: int = -1) -> list[str]:
        """The contexts."""
        return self._registry.contexts(offset, limit)

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
        query = {**given(resourceType=resource_type), **paged(offset, limit), **_types(association_types)}
        path = f"/associations/resources/{path_part(resource_namespace)}/{path_part(resource_name)}"
        return [Association.from_dict(one) for one in self._registry.send("GET", path, query)]

    def create_association(self, request: AssociationCreateOrUpdateRequest) -> AssociationResponse:
        """Associate subjects with a resource."""
        return AssociationResponse.from_dict(self._registry.send("POST", "/associations", {}, request.to_dict()))

    def delete_associations(
        self,
        resource_id: str,
        resource_type: str | None = None,
        association_types: Sequence[str] | None = None,
        cascade_lifecycle: bool = False,
    ) -> None:
        """Take associations of a resource away."""
        cascade = {"cascadeLifecycle": str(cascade_lifecycle).lower()}
        query = {**cascade, **given(resourceType=resource_type), **_types(association_types)}
        self._registry.send("DELETE", f"/associations/resources/{path_part(resource_id)}", query)

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


def _registry(settings: ClientSettings, clock: Clock, ids: Ids | None) -> HttpRegistry | LakeRegistry:
    if settings.http is not None:
        return HttpRegistry(HttpTransport(settings.http, clock, ids))
    if isinstance(settings.lake, Lake):
        return LakeRegistry(settings.lake, settings.topic)
    return LakeRegistry(Lake(settings.lake), settings.topic, owned=True)


def _types(given: Sequence[str] | None) -> dict[str, list[str]]:
    return {"associationType": [*given]} if given else {}


def _number(value: int | None) -> int:
    if value is None:
        raise ValueError("the registry gave no id")
    return value

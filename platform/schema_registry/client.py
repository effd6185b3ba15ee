"""A client of schema registries, in the shape of confluent-kafka's SchemaRegistryClient."""

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

from tidelog.log.lake import Lake
from tidelog.schema_registry.model import RegisteredSchema, Schema, SchemaRegistryError, ServerConfig
from tidelog.schema_registry.transports import HttpTransport, LakeTransport, Transport

K = TypeVar("K")
V = TypeVar("V")

_KEYS = frozenset({"url", "lake", "topic", "timeout", "basic.auth.user.info", "cache.capacity"})


class SchemaRegistryClient:
    """Talks to a registry. All methods may be called from many threads, and raise `SchemaRegistryError`.

    `conf`: `url` of a server, or several with commas between; or `lake`, an opened `Lake` or its address, which needs
    no server. `topic`: of a lake's schemas, `_schemas`. `timeout`: of a request, in seconds. `basic.auth.user.info`:
    user:password. What never changes once it is there, an id's schema, is asked for once, and kept: `cache.capacity`,
    1000 unless given, of ids and of registrations, those that were asked for first go first.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        unknown = sorted({*conf} - _KEYS)
        if unknown:
            raise ValueError(f"Unrecognized properties: {', '.join(unknown)}. There are {', '.join(sorted(_KEYS))}.")
        if ("url" in conf) == ("lake" in conf):
            raise ValueError("The client needs either url, a registry's address, or lake, and not both.")
        self._transport = _transport(conf)
        self._schemas: dict[tuple[int, str, str], Schema] = {}
        self._ids: dict[tuple[str, Schema, bool], RegisteredSchema] = {}
        self._capacity = int(conf.get("cache.capacity", 1000))
        if self._capacity < 1:
            raise ValueError("cache.capacity must be 1 or more.")
        self._lock = threading.Lock()

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
            path, query = f"/subjects/{_part(subject_name)}/versions", _flags(normalize=normalize_schemas)
            answer = self._transport.send("POST", path, query, schema.to_json())
            known = RegisteredSchema.from_json({"subject": subject_name, **schema.to_json(), **answer})
            with self._lock:
                _keep(self._ids, key, known, self._capacity)
        return known

    def get_schema(self, schema_id: int, subject_name: str | None = None, fmt: str | None = None) -> Schema:
        """The schema of an id. `fmt`: "resolved" or "serialized", as the API has them."""
        key = (schema_id, subject_name or "", fmt or "")
        known = self._schemas.get(key)
        if known is None:
            query = _given(subject=subject_name, format=fmt)
            known = Schema.from_json(self._transport.send("GET", f"/schemas/ids/{schema_id}", query))
            with self._lock:
                _keep(self._schemas, key, known, self._capacity)
        return known

    def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        """The schema of a guid."""
        return Schema.from_json(self._transport.send("GET", f"/schemas/guids/{_part(guid)}", _given(format=fmt)))

    def lookup_schema(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """The version that a schema has in a subject."""
        query = _flags(normalize=normalize_schemas, deleted=deleted)
        return _registered(self._transport.send("POST", f"/subjects/{_part(subject_name)}", query, schema.to_json()))

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
        query = _given(subjectPrefix=subject_prefix) | _flags(deleted=deleted, deletedOnly=deleted_only)
        found: list[str] = self._transport.send("GET", "/subjects", query | _page(offset, limit))
        return found

    def get_subjects_by_schema_id(
        self, schema_id: int, subject_name: str | None = None, deleted: bool = False
    ) -> list[str]:
        """The subjects that have an id's schema."""
        query = _given(subject=subject_name) | _flags(deleted=deleted)
        found: list[str] = self._transport.send("GET", f"/schemas/ids/{schema_id}/subjects", query)
        return found

    def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        """A subject's newest version."""
        return self.get_version(subject_name, "latest", fmt=fmt)

    def get_latest_with_metadata(
        self, subject_name: str, metadata: Mapping[str, str], deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """A subject's newest version with these properties, one at most through this client."""
        if len(metadata) > 1:
            raise ValueError("Give one property: the newest version is looked for by that.")
        query = _given(format=fmt) | _flags(deleted=deleted)
        for key, value in metadata.items():
            query |= {"key": key, "value": value}
        return _registered(self._transport.send("GET", f"/subjects/{_part(subject_name)}/metadata", query))

    def get_version(
        self, subject_name: str, version: int | str = "latest", deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """A version of a subject."""
        path, query = f"/subjects/{_part(subject_name)}/versions/{_part(str(version))}", _given(format=fmt)
        return _registered(self._transport.send("GET", path, query | _flags(deleted=deleted)))

    def get_versions(self, subject_name: str, deleted: bool = False, offset: int = 0, limit: int = -1) -> list[int]:
        """The numbers of a subject's versions, oldest first."""
        query = _flags(deleted=deleted) | _page(offset, limit)
        found: list[int] = self._transport.send("GET", f"/subjects/{_part(subject_name)}/versions", query)
        return found

    def get_referenced_by(self, subject_name: str, version: int | str = "latest") -> list[int]:
        """Ids of the schemas that reference a version."""
        path = f"/subjects/{_part(subject_name)}/versions/{_part(str(version))}/referencedby"
        found: list[int] = self._transport.send("GET", path, {})
        return found

    def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """Delete a subject softly, with `permanent` for good, after a soft delete; the versions that were deleted."""
        path = f"/subjects/{_part(subject_name)}"
        found: list[int] = self._transport.send("DELETE", path, _flags(permanent=permanent))
        self.clear_caches()
        return found

    def delete_version(self, subject_name: str, version: int, permanent: bool = False) -> int:
        """Delete a version softly, with `permanent` for good; its number."""
        path = f"/subjects/{_part(subject_name)}/versions/{version}"
        found: int = self._transport.send("DELETE", path, _flags(permanent=permanent))
        self.clear_caches()
        return found

    # --- compatibility and settings ------------------------------------------------------------------------

    def test_compatibility(
        self, subject_name: str, schema: Schema, version: int | str = "latest", normalize: bool = False
    ) -> bool:
        """Whether a schema is compatible with a version."""
        path = f"/compatibility/subjects/{_part(subject_name)}/versions/{_part(str(version))}"
        answer = self._transport.send("POST", path, _flags(normalize=normalize), schema.to_json())
        return bool(answer["is_compatible"])

    def test_compatibility_all_versions(self, subject_name: str, schema: Schema, normalize: bool = False) -> bool:
        """Whether a registration would take a schema."""
        path = f"/compatibility/subjects/{_part(subject_name)}/versions"
        answer = self._transport.send("POST", path, _flags(normalize=normalize), schema.to_json())
        return bool(answer["is_compatible"])

    def incompatibilities(
        self, subject_name: str, schema: Schema, version: int | str | None = None, normalize: bool = False
    ) -> list[str]:
        """What of a schema is not compatible with a version, [] for nothing; None: as a registration is tested."""
        path = f"/compatibility/subjects/{_part(subject_name)}/versions"
        query = _flags(normalize=normalize, verbose=True)
        one = "" if version is None else f"/{_part(str(version))}"
        answer = self._transport.send("POST", path + one, query, schema.to_json())
        found: list[str] = answer.get("messages") or []
        return [] if answer["is_compatible"] else found or ["The schema is not compatible."]

    def set_compatibility(self, subject_name: str | None = None, level: str | None = None) -> str:
        """Set the compatibility level of a subject, or of all; the level that was set."""
        if level is None:
            raise ValueError("level must be set")
        answer = self._transport.send("PUT", _setting("config", subject_name), {}, {"compatibility": level.upper()})
        return str(answer["compatibility"])

    def get_compatibility(self, subject_name: str | None = None) -> str:
        """The compatibility level of a subject, or of all."""
        return str(self._transport.send("GET", _setting("config", subject_name), {})["compatibilityLevel"])

    def set_config(self, subject_name: str | None = None, config: ServerConfig | None = None) -> ServerConfig:
        """Set what a configuration names; what was set."""
        if config is None:
            raise ValueError("config must be set")
        path = _setting("config", subject_name)
        return ServerConfig.from_json(self._transport.send("PUT", path, {}, config.to_json()))

    def get_config(self, subject_name: str | None = None) -> ServerConfig:
        """The configuration of a subject, or of all."""
        return ServerConfig.from_json(self._transport.send("GET", _setting("config", subject_name), {}))

    def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """Take a configuration away; what counted before."""
        return ServerConfig.from_json(self._transport.send("DELETE", _setting("config", subject_name), {}))

    def get_mode(self, subject_name: str) -> str:
        """A subject's mode."""
        return str(self._transport.send("GET", _setting("mode", subject_name), {})["mode"])

    def update_mode(self, subject_name: str, mode: str, force: bool = False) -> str:
        """Set a subject's mode."""
        answer = self._transport.send("PUT", _setting("mode", subject_name), _flags(force=force), {"mode": mode})
        return str(answer["mode"])

    def delete_mode(self, subject_name: str) -> str:
        """Take a subject's mode away; what counted before."""
        return str(self._transport.send("DELETE", _setting("mode", subject_name), {})["mode"])

    def get_global_mode(self) -> str:
        """The mode of all."""
        return str(self._transport.send("GET", "/mode", {})["mode"])

    def update_global_mode(self, mode: str, force: bool = False) -> str:
        """Set the mode of all."""
        return str(self._transport.send("PUT", "/mode", _flags(force=force), {"mode": mode})["mode"])

    def settings_in_force(self, subject_name: str | None = None) -> dict[str, Any]:
        """What counts for a subject, or for all: its own settings, and those of all where it has none."""
        query = _flags(defaultToGlobal=subject_name is not None)
        config: dict[str, Any] = dict(self._transport.send("GET", _setting("config", subject_name), query))
        level = config.pop("compatibilityLevel", None)
        mode = self._transport.send("GET", _setting("mode", subject_name), query)["mode"]
        return {**({} if level is None else {"compatibility": level}), "mode": mode, **config}

    def unset(self, subject_name: str | None = None) -> None:
        """Take the configuration and the mode of a subject, or of all, away; nothing where there are none."""
        for kind in ("mode", "config"):  # a mode may forbid the other
            try:
                self._transport.send("DELETE", _setting(kind, subject_name), {})
            except SchemaRegistryError as error:
                if error.http_status_code != 404:
                    raise

    def get_contexts(self, offset: int = 0, limit: int = -1) -> list[str]:
        """The contexts."""
        found: list[str] = self._transport.send("GET", "/contexts", _page(offset, limit))
        return found

    def clear_caches(self) -> None:
        """Forget what was asked for once."""
        with self._lock:
            self._schemas.clear()
            self._ids.clear()

    @staticmethod
    def new_client(conf: Mapping[str, Any]) -> "SchemaRegistryClient":
        """A client."""
        return SchemaRegistryClient(conf)


def _transport(conf: Mapping[str, Any]) -> Transport:
    if "lake" in conf:
        lake, topic = conf["lake"], conf.get("topic", "_schemas")
        return LakeTransport(lake, topic) if isinstance(lake, Lake) else LakeTransport(Lake(lake), topic, owned=True)
    urls = [url.strip() for url in str(conf["url"]).split(",") if url.strip()]
    if not urls or not all(url.startswith(("http://", "https://")) for url in urls):
        raise ValueError(f"url must be an address such as http://localhost:8081, not {conf['url']!r}.")
    user, colon, password = str(conf.get("basic.auth.user.info", "")).partition(":")
    return HttpTransport(urls, float(conf.get("timeout", 30)), (user, password) if colon else None)


def _keep(cache: dict[K, V], key: K, value: V, capacity: int) -> None:
    cache[key] = value
    while len(cache) > capacity:
        del cache[next(iter(cache))]


def _setting(kind: str, subject: str | None) -> str:
    return f"/{kind}" if subject is None else f"/{kind}/{_part(subject)}"


def _part(text: str) -> str:
    return quote(text, safe="")


def _flags(**flags: bool) -> dict[str, str]:
    return {key: "true" for key, value in flags.items() if value}


def _given(**texts: str | None) -> dict[str, str]:
    return {key: value for key, value in texts.items() if value is not None}


def _page(offset: int, limit: int) -> dict[str, str]:
    return {
        key: str(value) for key, value, default in (("offset", offset, 0), ("limit", limit, -1)) if value != default
    }


def _registered(answer: Any) -> RegisteredSchema:
    return RegisteredSchema.from_json(answer)


def _number(value: int | None) -> int:
    if value is None:
        raise ValueError("the registry gave no id")
    return value

"""The part of a registry's client that is about compatibility, configurations and modes."""

from typing import Any
from urllib.parse import quote

from tidelog.clients.schema_registry.model import Schema, SchemaRegistryError, ServerConfig
from tidelog.clients.schema_registry.transports import Transport


class SettingsCalls:
    """Calls of Confluent's API under /compatibility, /config and /mode. All raise `SchemaRegistryError`."""

    _transport: Transport

    def test_compatibility(
        self,
        subject_name: str,
        schema: Schema,
        version: int | str = "latest",
        normalize: bool = False,
        verbose: bool = False,
    ) -> bool:
        """Whether a schema is compatible with a version; `incompatibilities` says why not."""
        path = f"/compatibility/subjects/{path_part(subject_name)}/versions/{path_part(str(version))}"
        answer = self._transport.send("POST", path, flags(normalize=normalize, verbose=verbose), schema.to_dict())
        return bool(answer["is_compatible"])

    def test_compatibility_all_versions(
        self, subject_name: str, schema: Schema, normalize: bool = False, verbose: bool = False
    ) -> bool:
        """Whether a registration would take a schema; `incompatibilities` says why not."""
        path = f"/compatibility/subjects/{path_part(subject_name)}/versions"
        answer = self._transport.send("POST", path, flags(normalize=normalize, verbose=verbose), schema.to_dict())
        return bool(answer["is_compatible"])

    def incompatibilities(
        self, subject_name: str, schema: Schema, version: int | str | None = None, normalize: bool = False
    ) -> list[str]:
        """What of a schema is not compatible with a version, [] for nothing; None: as a registration is tested."""
        path = f"/compatibility/subjects/{path_part(subject_name)}/versions"
        query = flags(normalize=normalize, verbose=True)
        one = "" if version is None else f"/{path_part(str(version))}"
        answer = self._transport.send("POST", path + one, query, schema.to_dict())
        found: list[str] = answer.get("messages") or []
        return [] if answer["is_compatible"] else found or ["The schema is not compatible."]

    def set_compatibility(self, subject_name: str | None = None, level: str | None = None) -> str:
        """Set the compatibility level of a subject, or of all; the level that was set."""
        if level is None:
            raise ValueError("level must be set")
        answer = self._transport.send(
            "PUT", _setting_path("config", subject_name), {}, {"compatibility": level.upper()}
        )
        return str(answer["compatibility"])

    def get_compatibility(self, subject_name: str | None = None) -> str:
        """The compatibility level of a subject, or of all."""
        return str(self._transport.send("GET", _setting_path("config", subject_name), {})["compatibilityLevel"])

    def set_config(self, subject_name: str | None = None, config: ServerConfig | None = None) -> ServerConfig:
        """Set what a configuration names; what was set."""
        if config is None:
            raise ValueError("config must be set")
        path = _setting_path("config", subject_name)
        return ServerConfig.from_dict(self._transport.send("PUT", path, {}, config.to_dict()))

    def get_config(self, subject_name: str | None = None) -> ServerConfig:
        """The configuration of a subject, or of all."""
        return ServerConfig.from_dict(self._transport.send("GET", _setting_path("config", subject_name), {}))

    def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """Take a configuration away; what counted before."""
        return ServerConfig.from_dict(self._transport.send("DELETE", _setting_path("config", subject_name), {}))

    def get_mode(self, subject_name: str) -> str:
        """A subject's mode."""
        return str(self._transport.send("GET", _setting_path("mode", subject_name), {})["mode"])

    def update_mode(self, subject_name: str, mode: str, force: bool = False) -> str:
        """Set a subject's mode."""
        answer = self._transport.send("PUT", _setting_path("mode", subject_name), flags(force=force), {"mode": mode})
        return str(answer["mode"])

    def delete_mode(self, subject_name: str) -> str:
        """Take a subject's mode away; what counted before."""
        return str(self._transport.send("DELETE", _setting_path("mode", subject_name), {})["mode"])

    def get_global_mode(self) -> str:
        """The mode of all."""
        return str(self._transport.send("GET", "/mode", {})["mode"])

    def update_global_mode(self, mode: str, force: bool = False) -> str:
        """Set the mode of all."""
        return str(self._transport.send("PUT", "/mode", flags(force=force), {"mode": mode})["mode"])

    def settings_in_force(self, subject_name: str | None = None) -> dict[str, Any]:
        """What counts for a subject, or for all: its own settings, and those of all where it has none."""
        query = flags(defaultToGlobal=subject_name is not None)
        config: dict[str, Any] = dict(self._transport.send("GET", _setting_path("config", subject_name), query))
        level = config.pop("compatibilityLevel", None)
        mode = self._transport.send("GET", _setting_path("mode", subject_name), query)["mode"]
        return {**({} if level is None else {"compatibility": level}), "mode": mode, **config}

    def unset(self, subject_name: str | None = None) -> None:
        """Take the configuration and the mode of a subject, or of all, away; nothing where there are none."""
        for kind in ("mode", "config"):  # a mode may forbid the other
            try:
                self._transport.send("DELETE", _setting_path(kind, subject_name), {})
            except SchemaRegistryError as error:
                if error.http_status_code != 404:
                    raise


def path_part(text: str) -> str:
    """A part of a path, in which nothing of it counts as a separator."""
    return quote(text, safe="")


def flags(**given: bool) -> dict[str, str]:
    """Those of a query that are set."""
    return {key: "true" for key, value in given.items() if value}


def _setting_path(kind: str, subject: str | None) -> str:
    return f"/{kind}" if subject is None else f"/{kind}/{path_part(subject)}"

"""The part of a registry's client that is about compatibility, configurations and modes."""

from typing import Any

from tidelog.clients.schema_registry.http_registry import HttpRegistry
from tidelog.clients.schema_registry.lake_registry import LakeRegistry
from tidelog.clients.schema_registry.model import Schema, SchemaRegistryError, ServerConfig


class SettingsCalls:
    """Calls of Confluent's API under /compatibility, /config and /mode. All raise `SchemaRegistryError`."""

    _registry: HttpRegistry | LakeRegistry

    def test_compatibility(
        self,
        subject_name: str,
        schema: Schema,
        version: int | str = "latest",
        normalize: bool = False,
        verbose: bool = False,
    ) -> bool:
        """Whether a schema is compatible with a version; `incompatibilities` says why not."""
        return not self._registry.incompatibilities(subject_name, schema, version, normalize=normalize, verbose=verbose)

    def test_compatibility_all_versions(
        self, subject_name: str, schema: Schema, normalize: bool = False, verbose: bool = False
    ) -> bool:
        """Whether a registration would take a schema; `incompatibilities` says why not."""
        return not self._registry.incompatibilities(subject_name, schema, None, normalize=normalize, verbose=verbose)

    def incompatibilities(
        self, subject_name: str, schema: Schema, version: int | str | None = None, normalize: bool = False
    ) -> list[str]:
        """What of a schema is not compatible with a version, [] for nothing; None: as a registration is tested."""
        return self._registry.incompatibilities(subject_name, schema, version, normalize=normalize, verbose=True)

    def set_compatibility(self, subject_name: str | None = None, level: str | None = None) -> str:
        """Set the compatibility level of a subject, or of all; the level that was set."""
        if level is None:
            raise ValueError("level must be set")
        return str(self._registry.set_config(subject_name, {"compatibility": level.upper()})["compatibility"])

    def get_compatibility(self, subject_name: str | None = None) -> str:
        """The compatibility level of a subject, or of all."""
        return str(self._registry.config(subject_name)["compatibilityLevel"])

    def set_config(self, subject_name: str | None = None, config: ServerConfig | None = None) -> ServerConfig:
        """Set what a configuration names; what was set."""
        if config is None:
            raise ValueError("config must be set")
        return ServerConfig.from_dict(self._registry.set_config(subject_name, config.to_dict()))

    def get_config(self, subject_name: str | None = None) -> ServerConfig:
        """The configuration of a subject, or of all."""
        return ServerConfig.from_dict(self._registry.config(subject_name))

    def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """Take a configuration away; what counted before."""
        return ServerConfig.from_dict(self._registry.delete_config(subject_name))

    def get_mode(self, subject_name: str) -> str:
        """A subject's mode."""
        return self._registry.mode(subject_name)

    def update_mode(self, subject_name: str, mode: str, force: bool = False) -> str:
        """Set a subject's mode."""
        return self._registry.set_mode(subject_name, mode, force=force)

    def delete_mode(self, subject_name: str) -> str:
        """Take a subject's mode away; what counted before."""
        return self._registry.delete_mode(subject_name)

    def get_global_mode(self) -> str:
        """The mode of all."""
        return self._registry.mode(None)

    def update_global_mode(self, mode: str, force: bool = False) -> str:
        """Set the mode of all."""
        return self._registry.set_mode(None, mode, force=force)

    def settings_in_force(self, subject_name: str | None = None) -> dict[str, Any]:
        """What counts for a subject, or for all: its own settings, and those of all where it has none."""
        named = subject_name is not None
        config = dict(self._registry.config(subject_name, in_force=named))
        level = config.pop("compatibilityLevel", None)
        mode = self._registry.mode(subject_name, in_force=named)
        return {**({} if level is None else {"compatibility": level}), "mode": mode, **config}

    def unset(self, subject_name: str | None = None) -> None:
        """Take the configuration and the mode of a subject, or of all, away; nothing where there are none."""
        for delete in (self._registry.delete_mode, self._registry.delete_config):  # a mode may forbid the other
            try:
                delete(subject_name)
            except SchemaRegistryError as error:
                if error.http_status_code != 404:
                    raise

"""Values from outside of a configuration: `${file:/path:key}`, `${env:NAME}`, `${directory:/path:name}`.

KIP-297 (variables and `config.providers`), KIP-632 (directories), KIP-887 (environment), KIP-993 (allowed paths). Only
what runs gets the values: the topic of configurations, the REST API's answers, statuses and the log have the variables.
"""

import json
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, quote_plus

from tidelog.connect.config.values import ConnectConfigError
from tidelog.log.base.properties import properties
from tidelog.log.base.typed_values import listed

_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
_PACKAGE: Final = "org.apache.kafka.common.config.provider."
_MOST_BYTES: Final = 2**20
# A value below this length is looked for as a word of its own: a text of one letter is in every other one.
_SHORT: Final = 4


class ConfigProvider(ABC):
    """Reads values. `name`: as variables have it; `given`: its parameters, `config.providers.NAME.param.*`."""

    short: str
    java_class: str

    def __init__(self, name: str, given: Mapping[str, str]) -> None:
        self.name = name
        self._given = given

    @abstractmethod
    def value(self, path: str, key: str) -> str:
        """The value of a key below a path ("" without one). Raises `ConnectConfigError`."""


class _OfFiles(ConfigProvider):
    """What reads files: in `allowed.paths` alone, where that is given."""

    def _allowed(self, path: Path) -> Path:
        """The file, links followed. Raises `ConnectConfigError` for one outside of `allowed.paths`."""
        real_path = Path(os.path.realpath(path))
        folders = listed(self._given.get("allowed.paths", ""))
        if folders and not any(real_path.is_relative_to(os.path.realpath(folder)) for folder in folders):
            raise ConnectConfigError(
                f"The config provider {self.name} may not read {path}: config.providers.{self.name}.param.allowed.paths"
                " of the worker doesn't have it."
            )
        return real_path

    def _text(self, path: Path) -> str:
        real_path = self._allowed(path)
        try:
            if not real_path.is_file():
                raise ConnectConfigError(f"The config provider {self.name} finds no file {path} on this worker.")
            if real_path.stat().st_size > _MOST_BYTES:
                raise ConnectConfigError(f"{path} has more than {_MOST_BYTES} bytes: it is no file of settings.")
            return real_path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
            raise ConnectConfigError(f"The config provider {self.name} can't read {path}: {why}.") from None


class FileConfigProvider(_OfFiles):
    """`${file:/path/to/file:key}`: a key of a properties file."""

    short, java_class = "file", _PACKAGE + "FileConfigProvider"

    def value(self, path: str, key: str) -> str:
        """As of `ConfigProvider`."""
        settings = properties(self._text(Path(path)))
        if key not in settings:
            raise ConnectConfigError(f"{path} has no key {key}.")
        return settings[key]


class DirectoryConfigProvider(_OfFiles):
    """`${directory:/path:name}`: the content of a file of a directory, as Kubernetes mounts secrets."""

    short, java_class = "directory", _PACKAGE + "DirectoryConfigProvider"

    def value(self, path: str, key: str) -> str:
        """As of `ConfigProvider`."""
        if key in ("", ".", "..") or "/" in key:
            raise ConnectConfigError(f"{key!r} is no name of a file in {path}.")
        return self._text(Path(path) / key)


class EnvVarConfigProvider(ConfigProvider):
    """`${env:NAME}`: a variable of the worker's environment; `allowlist.pattern` says which."""

    short, java_class = "env", _PACKAGE + "EnvVarConfigProvider"

    def __init__(self, name: str, given: Mapping[str, str]) -> None:
        super().__init__(name, given)
        try:
            self._allowlist = re.compile(given.get("allowlist.pattern", ".*"))
        except re.error as error:
            raise ConnectConfigError(
                f"Invalid value for configuration config.providers.{name}.param.allowlist.pattern: {error}"
            ) from None

    def value(self, path: str, key: str) -> str:
        """As of `ConfigProvider`."""
        if path:
            raise ConnectConfigError("A variable of the environment has no path: write ${" + f"{self.name}:NAME" + "}.")
        if key not in os.environ or not self._allowlist.fullmatch(key):
            raise ConnectConfigError(f"The worker's environment has no {key} that connectors may read.")
        return os.environ[key]


_KINDS: Final[tuple[type[ConfigProvider], ...]] = (FileConfigProvider, DirectoryConfigProvider, EnvVarConfigProvider)


class ProvidedValues:
    """The values that variables stood for, so that texts can be shown without them. For all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def add(self, values: Mapping[str, str]) -> None:
        """Learn values. `values`: {value: its variable}."""
        with self._lock:
            forms = {form: variable for value, variable in values.items() for form in _forms(value)}
            if forms.items() <= self._known.items():
                return
            self._known |= forms
            self._pattern = _any_of(self._known)

    def hidden(self, text: str) -> str:
        """The text, with variables in place of their values."""
        pattern, known = self._pattern, self._known
        return text if pattern is None else pattern.sub(lambda found: known[found[0]], text)


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A configuration with the values. `raw`: as it was written; `values`: {value: its variable}."""

    raw: Mapping[str, str]
    config: Mapping[str, str]
    values: Mapping[str, str]

    def unresolved(self, made: Mapping[str, str]) -> dict[str, str]:
        """A task's configuration that was made of this one, with the variables again wherever the values are."""
        values = {value: variable for value, variable in self.values.items() if value}
        if not values:
            return dict(made)
        pattern = _any_of(values)
        return {
            key: self.raw[key] if value == self.config.get(key) else pattern.sub(lambda one: values[one[0]], value)
            for key, value in made.items()
        }


class ConfigProviders:
    """The providers that a worker names. Without `config.providers` there are none, and `${…}` is a text like others.

    `secrets`: gets every value that is read. Raises `ConnectConfigError` for a provider that isn't there.
    """

    def __init__(self, worker: Mapping[str, str] | None = None, secrets: ProvidedValues | None = None) -> None:
        worker = worker or {}
        self.secrets = secrets or ProvidedValues()
        self._providers: dict[str, ConfigProvider] = {}
        for name in listed(worker.get("config.providers", "")):
            prefix = f"config.providers.{name}."
            given = {
                key.removeprefix(f"{prefix}param."): value
                for key, value in worker.items()
                if key.startswith(f"{prefix}param.")
            }
            self._providers[name] = _kind(prefix, worker.get(f"{prefix}class", name))(name, given)

    def resolved(self, raw: Mapping[str, str]) -> ResolvedConfig:
        """A configuration with the values of its variables. Raises `ConnectConfigError` where one has none."""
        values: dict[str, str] = {}
        config = {key: self._replaced(key, value, values) for key, value in raw.items()}
        self.secrets.add(values)
        return ResolvedConfig(raw, config, values)

    def _replaced(self, key: str, text: str, values: dict[str, str]) -> str:
        def value(reference: re.Match[str]) -> str:
            provider = self._providers.get(reference[1])
            if provider is None:
                return reference[0]
            try:
                said = provider.value(reference[3] or "", reference[4])
            except ConnectConfigError as error:
                raise ConnectConfigError(f"Invalid value {reference[0]} for configuration {key}: {error}") from None
            values[said] = reference[0]
            return said

        return _VARIABLE.sub(value, text) if self._providers and isinstance(text, str) else text


def hidden_in(value: Any, hide: Callable[[str], str]) -> Any:
    """A value of JSON, every text in it without secrets."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {key: hidden_in(one, hide) for key, one in value.items()}
    return [hidden_in(one, hide) for one in value] if isinstance(value, list) else value


def _kind(prefix: str, said: str) -> type[ConfigProvider]:
    for one in _KINDS:
        if said in (one.short, one.java_class, one.__name__):
            return one
    known = ", ".join(one.__name__ for one in _KINDS)
    raise ConnectConfigError(f"Invalid value {said} for configuration {prefix}class: there are {known}.")


def _forms(value: str) -> set[str]:
    """A value as texts may have it: as it is, in a URL, in JSON, in Python's quotes, and without the space around."""
    found = {value, value.strip()}
    found |= {form for one in tuple(found) for form in (quote(one, safe=""), quote_plus(one), repr(one)[1:-1])}
    return {one for one in found | {json.dumps(one)[1:-1] for one in (value, value.strip())} if one}


def _any_of(forms: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_searched, sorted(forms, key=len, reverse=True))))


def _searched(form: str) -> str:
    escaped = re.escape(form)
    return escaped if len(form) >= _SHORT else rf"(?<!\w){escaped}(?!\w)"

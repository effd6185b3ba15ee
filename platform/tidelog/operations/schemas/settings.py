"""Settings of subjects, contexts and all: compatibility, modes; where they come from, and how they change."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from tidelog.operations.schemas.errors import (
    invalid_mode,
    no_compatibility_configured,
    no_mode_configured,
    not_permitted,
    reference_exists,
    subject_not_found,
)
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.records import CLEAR_SUBJECT, CONFIG, MODE, RegistryRecord, tombstone
from tidelog.operations.schemas.subjects import checked
from tidelog.schemas.base.errors import RegistryError, malformed
from tidelog.schemas.base.model import RuleSet, SchemaMetadata
from tidelog.schemas.base.subject_names import GLOBAL_CONTEXT, SubjectName
from tidelog.schemas.compatibility import CompatibilityLevel

# The key under which records have the level, which requests name `compatibility`.
_LEVEL: Final = "compatibilityLevel"
DEFAULT_LEVEL: Final = CompatibilityLevel.BACKWARD
_POLICIES: Final = ("STRICT", "LENIENT")
_FLAGS: Final = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
_TEXTS: Final = ("alias", "aliasForDeks", "compatibilityGroup")
_METADATA: Final = ("defaultMetadata", "overrideMetadata")
_RULES: Final = ("defaultRuleSet", "overrideRuleSet")
# What a subject's configuration takes from the one for all where it says nothing itself.
_TAKEN: Final = (*_FLAGS, "compatibilityPolicy", "compatibilityGroup")


class Mode(StrEnum):
    """What may be done to a subject (Confluent's modes)."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def imports(self) -> bool:
        """Whether schemas come with their ids, and untested."""
        return self in (Mode.IMPORT, Mode.FORWARD)


def config_of(state: RegistryState, subject: str | None, *, in_scope: bool = False) -> Mapping[str, Any]:
    """The configuration of a subject, a context, or of all (None), with a compatibility level.

    `in_scope`: where it has none of its own, that of the context, or of all. Raises `RegistryError` 40408 without it.
    """
    own = state.configs.get(subject)
    if own is None and subject is not None and not in_scope and SubjectName.of(subject).context != GLOBAL_CONTEXT:
        raise no_compatibility_configured(subject)
    config = (_scoped(state.configs, subject) if in_scope else own) or {}
    if in_scope and own is not None and subject is not None:
        for_all = state.configs.get(None) or {}
        config = {**{key: for_all[key] for key in _TAKEN if key in for_all}, **config}
    level = config.get(_LEVEL)
    if level is None and (in_scope or subject is not None):
        level = (_scoped(state.configs, None) or {}).get(_LEVEL)
    config = {key: value for key, value in config.items() if key != "subject"}
    return {**config, _LEVEL: level or DEFAULT_LEVEL.value}


def mode_of(state: RegistryState, subject: str | None, *, in_scope: bool = False) -> Mode:
    """The mode of a subject, a context, or of all (None).

    `in_scope`: where it has none of its own, that of the context, or of all. Raises `RegistryError` 40409 without it.
    """
    own = state.modes.get(subject)
    if own is None and subject is not None and not in_scope and SubjectName.of(subject).context != GLOBAL_CONTEXT:
        raise no_mode_configured(subject)
    return Mode((_scoped(state.modes, subject) if in_scope else own) or Mode.READWRITE)


def _scoped(settings: Mapping[str | None, Any], subject: str | None) -> Any:
    """The settings nearest to a subject: its own, its context's, those of all."""
    places = [subject]
    if subject is not None:
        places.append(SubjectName.of(subject).context_settings)
    places.append(f":{GLOBAL_CONTEXT}:")
    return next((settings[place] for place in places if place in settings), None)


def aliased(state: RegistryState, subject: str) -> str:
    """The subject that one is an alias of, itself where it is none; in its own context unless another is named.

    Raises `RegistryError` 42208 for an alias of what no subject may be called.
    """
    alias = (state.configs.get(subject) or {}).get("alias")
    return checked(SubjectName.of(subject).inside(str(alias)) if alias else subject)


def aliases(state: RegistryState) -> Iterator[tuple[str, str]]:
    """(name, the subject that it is an alias of), sorted."""
    for name in sorted(one for one in state.configs if one is not None):
        alias = state.configs[name].get("alias")
        if alias:
            yield name, SubjectName.of(name).inside(str(alias))


def check_writable(state: RegistryState, subject: str | None) -> None:
    """Raise `RegistryError` 42205 where a mode allows no changes."""
    modes = (mode_of(state, subject, in_scope=True), mode_of(state, None, in_scope=True))
    if modes[0] in (Mode.READONLY, Mode.READONLY_OVERRIDE) or modes[1] is Mode.READONLY_OVERRIDE:
        context = SubjectName.of(subject or "").context
        raise not_permitted(f"Subject {subject} in context {context} is in read-only mode")


# --- changes -----------------------------------------------------------------------------------------------


def decide_config(
    state: RegistryState, subject: str | None, change: Mapping[str, Any]
) -> tuple[dict[str, Any], list[RegistryRecord]]:
    """Set what a change names; what it gives as null is taken away, all else stays. Returns what was set, and records.

    What was set names the level `compatibility`, as requests do.
    """
    check_writable(state, subject)
    wanted = _checked(change)
    old = {key: value for key, value in (state.configs.get(subject) or {}).items() if key != "subject"}
    new = {key: value for key, value in {**old, **wanted}.items() if value is not None}
    config = {**_named(subject), **new}
    asked = {_LEVEL if key == "compatibility" else key for key in change}
    made = {"compatibility" if key == _LEVEL else key: value for key, value in config.items() if key in asked}
    return made, [RegistryRecord(CONFIG, subject, value=config)]


def decide_no_config(state: RegistryState, subject: str | None) -> tuple[Mapping[str, Any], list[RegistryRecord]]:
    """Take a configuration away. Returns the one that counted, and records.

    Raises `RegistryError` 40401 where a subject has none.
    """
    check_writable(state, subject)
    if subject is not None and subject not in state.configs:
        raise subject_not_found(subject)
    return config_of(state, subject), [RegistryRecord(CONFIG, subject)]


def decide_mode(
    state: RegistryState, subject: str | None, mode: object, *, force: bool = False
) -> list[RegistryRecord]:
    """Set a mode; None takes it away. IMPORT, without `force`, needs a place without subjects, and clears softly
    deleted ones. FORWARD is a mode of all contexts only (`:.__GLOBAL:`).
    """
    if mode is None:
        return [RegistryRecord(MODE, subject)]
    wanted = _mode(mode)
    if wanted is Mode.FORWARD and subject != f":{GLOBAL_CONTEXT}:":
        raise RegistryError(42204, "Forward mode only supported on global level")
    records: list[RegistryRecord] = []
    if wanted is Mode.IMPORT and mode_of(state, subject, in_scope=True) is not Mode.IMPORT and not force:
        if _subjects(state, subject, deleted=False):
            raise not_permitted("Cannot import since found existing subjects")
        for name in _subjects(state, subject, deleted=True):
            for version in state.versions(name, deleted=True):
                if state.referenced_by(name, version.version, deleted=True):
                    raise reference_exists(name, version.version)
                records.append(tombstone(name, version.version))
        records.append(RegistryRecord(CLEAR_SUBJECT, subject, value=_named(subject)))
    return [*records, RegistryRecord(MODE, subject, value={**_named(subject), "mode": wanted.value})]


def decide_no_mode(
    state: RegistryState, subject: str | None, *, recursive: bool = False
) -> tuple[Mode | None, list[RegistryRecord]]:
    """Take a mode away; `recursive`: also those of a context's subjects. Returns the one that counted, and records.

    Raises `RegistryError` 40401 without one.
    """
    there = subject is None or subject in state.modes
    if not there and not recursive:
        raise subject_not_found(str(subject))
    records = [RegistryRecord(MODE, subject)]
    context = SubjectName.of(subject or "")
    if recursive and not context.name:
        inside = (one for one in state.modes if one is not None and SubjectName.of(one).context == context.context)
        records += [RegistryRecord(MODE, one) for one in sorted(inside) if SubjectName.of(one).name]
    return mode_of(state, subject) if there else None, records


def _subjects(state: RegistryState, subject: str | None, *, deleted: bool) -> list[str]:
    """The subject itself, all of a context, or all."""
    if subject is None:
        return state.subjects(":*:", deleted=deleted)
    if not SubjectName.of(subject).name:
        return state.subjects(subject, deleted=deleted)
    return [subject] if state.has(subject, deleted=deleted) else []


def _named(subject: str | None) -> dict[str, Any]:
    """How records of settings name what they are about."""
    return {} if subject is None else {"subject": subject}


def _mode(mode: object) -> Mode:
    if isinstance(mode, str) and mode.upper() in Mode.__members__:
        return Mode[mode.upper()]
    raise invalid_mode(mode)


def _checked(change: Mapping[str, Any]) -> dict[str, Any]:
    """A change's known keys, in Confluent's spelling. Raises `RegistryError` for values that they don't take."""
    given = {_LEVEL if key == "compatibility" else key: value for key, value in change.items()}
    config: dict[str, Any] = {}
    for key, value in given.items():
        if value is None:
            config[key] = None
        elif key == _LEVEL:
            config[key] = CompatibilityLevel.of(value).value
        elif key == "compatibilityPolicy":
            if not isinstance(value, str) or value.upper() not in _POLICIES:
                raise RegistryError(
                    42203, f"Invalid compatibility policy {value!r}. Valid values are strict and lenient."
                )
            config[key] = value.upper()
        elif (key in _FLAGS and isinstance(value, bool)) or (key in _TEXTS and isinstance(value, str)):
            config[key] = value
        elif key in _METADATA:
            metadata = SchemaMetadata.of(value)
            config[key] = metadata and metadata.json()
        elif key in _RULES:
            rules = RuleSet.of(value)
            config[key] = rules and rules.json()
        elif key in (*_FLAGS, *_TEXTS):
            raise malformed(f"The configuration's {key} can't be {value!r}.")
    known = {_LEVEL, "compatibilityPolicy", *_FLAGS, *_TEXTS, *_METADATA, *_RULES}
    return {key: value for key, value in config.items() if key in known}

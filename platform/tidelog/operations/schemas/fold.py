"""The state of a registry: what the records of `_schemas` say, in log order."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tidelog.operations.schemas.records import (
    CLEAR_SUBJECT,
    CONFIG,
    CONTEXT,
    DELETE_SUBJECT,
    MODE,
    NOOP,
    SCHEMA,
    RegistryRecord,
    SubjectVersion,
    subject_version,
)
from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.base.model import Schema
from tidelog.schemas.base.subject_names import DEFAULT_CONTEXT, SubjectName, begins_with

Place = tuple[str, int]

# The largest id, and the largest number of a version.
MOST_NUMBER: Final = 2**31 - 1


class RegistryState:
    """Versions, ids, settings. Only `take` changes it; every decision reads it.

    `configs` and `modes`: {subject, `:.context:`, or None for all: settings}. `skipped`: records that could not be
    read, which other registries may have written.
    """

    def __init__(self) -> None:
        self.configs: dict[str | None, Mapping[str, Any]] = {}
        self.modes: dict[str | None, str] = {}
        self.skipped = 0
        self._versions: dict[str, dict[int, SubjectVersion]] = {}
        self._by_id: dict[tuple[str, int], dict[Place, None]] = {}
        self._by_digest: dict[tuple[str, bytes], dict[int, None]] = {}
        self._referenced: dict[Place, dict[Place, None]] = {}
        self._highest: dict[str, int] = {}
        self._contexts: set[str] = set()

    # --- the fold ------------------------------------------------------------------------------------------

    def take(self, records: Iterable[RegistryRecord]) -> None:
        """Apply records, in log order. One that can't be read is counted and skipped, whatever it holds.

        A registry that it stopped would never start again.
        """
        for record in records:
            try:
                self._take(record)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError, RegistryError):
                self.skipped += 1

    def _take(self, record: RegistryRecord) -> None:
        value = record.value or {}
        if record.kind == SCHEMA:
            version = None if record.value is None else subject_version(record)
            self._remove(str(record.subject), record.version)
            if version is not None:
                self._add(version)
        elif record.kind == CONFIG:
            _put(self.configs, record.subject, record.value)
        elif record.kind == MODE:
            mode = value.get("mode")
            if not (mode is None or isinstance(mode, str)):
                raise ValueError("a mode is a text")
            _put(self.modes, record.subject, mode)
        elif record.kind == DELETE_SUBJECT and record.value is not None:
            self._delete_up_to(str(record.subject), int(value.get("version", 0)))
        elif record.kind == CLEAR_SUBJECT and record.value is not None:
            for subject in self._under(record.subject):
                for number, version in list(self._versions[subject].items()):
                    if version.deleted:
                        self._remove(subject, number)
        elif record.kind == CONTEXT:
            (self._contexts.discard if record.value is None else self._contexts.add)(str(record.subject))
        elif record.kind == NOOP:
            for context, highest in (value.get("ids") or {}).items():
                self._highest[context] = max(self._highest.get(context, 0), min(int(highest), MOST_NUMBER))

    def _add(self, version: SubjectVersion) -> None:
        place, context = (version.subject, version.version), SubjectName.of(version.subject).context
        self._versions.setdefault(version.subject, {})[version.version] = version
        self._by_id.setdefault((context, version.id), {})[place] = None
        self._by_digest.setdefault((context, version.schema.digest()), {})[version.id] = None
        self._highest[context] = max(self._highest.get(context, 0), version.id)
        for referenced in self._referenced_by(version):
            self._referenced.setdefault(referenced, {})[place] = None

    def _remove(self, subject: str, number: int) -> None:
        version = self._versions.get(subject, {}).pop(number, None)
        if version is None:
            return
        place, context = (subject, number), SubjectName.of(subject).context
        if not self._versions[subject]:
            del self._versions[subject]
        places = self._by_id[context, version.id]
        del places[place]
        if not places:
            del self._by_id[context, version.id]
            digest = (context, version.schema.digest())
            ids = self._by_digest[digest]
            ids.pop(version.id, None)
            if not ids:
                del self._by_digest[digest]
        for referenced in self._referenced_by(version):
            referring = self._referenced.get(referenced, {})
            referring.pop(place, None)
            if not referring:
                self._referenced.pop(referenced, None)

    def _delete_up_to(self, subject: str, last: int) -> None:
        versions = self._versions.get(subject, {})
        for number, version in versions.items():
            if number <= last and not version.deleted:
                versions[number] = replace(version, deleted=True)

    @staticmethod
    def _referenced_by(version: SubjectVersion) -> Iterator[Place]:
        subject = SubjectName.of(version.subject)
        for reference in version.schema.references:
            yield subject.inside(reference.subject), reference.version

    # --- what is there -------------------------------------------------------------------------------------

    def versions(self, subject: str, *, deleted: bool = False) -> list[SubjectVersion]:
        """A subject's versions, oldest first; with `deleted` also those that are softly deleted."""
        versions = self._versions.get(subject, {})
        return [versions[number] for number in sorted(versions) if deleted or not versions[number].deleted]

    def version(self, subject: str, number: int, *, deleted: bool = False) -> SubjectVersion | None:
        """One version; -1 is the newest."""
        if number == -1:
            return next(reversed(self.versions(subject, deleted=deleted)), None)
        found = self._versions.get(subject, {}).get(number)
        return None if found is None or (found.deleted and not deleted) else found

    def has(self, subject: str, *, deleted: bool = False) -> bool:
        """Whether a subject has a version."""
        return bool(self.versions(subject, deleted=deleted))

    def subjects(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        """Subjects, sorted. `prefix`: of a name, or of a name in a context; `:*:` stands for all contexts."""
        return [name for name in self._under(prefix or None) if self.has(name, deleted=deleted)]

    def _under(self, prefix: str | None) -> list[str]:
        return sorted(one for one in self._versions if begins_with(one, prefix or ""))

    def contexts(self) -> list[str]:
        """Contexts that have a subject, and the default one, sorted."""
        return sorted({DEFAULT_CONTEXT, *self._contexts, *(SubjectName.of(one).context for one in self._versions)})

    def by_id(self, number: int, context: str = DEFAULT_CONTEXT) -> Schema | None:
        """The schema of an id, also where all its versions are softly deleted."""
        for subject, version in self._by_id.get((context, number), {}):
            return self._versions[subject][version].schema
        return None

    def places_of(self, number: int, context: str = DEFAULT_CONTEXT, *, deleted: bool = False) -> list[SubjectVersion]:
        """The versions that have an id, sorted by subject and version."""
        places = sorted(self._by_id.get((context, number), {}))
        found = [self._versions[subject][version] for subject, version in places]
        return [one for one in found if deleted or not one.deleted]

    def id_of(self, schema: Schema, context: str = DEFAULT_CONTEXT) -> int | None:
        """The id that a schema has in a context, the lowest where an import gave it several."""
        return min(self._by_digest.get((context, schema.digest()), {}), default=None)

    def ids_of_guid(self, digest: bytes) -> list[tuple[str, int]]:
        """(context, id) of a schema's identity, sorted."""
        return sorted(
            (context, number) for (context, own), ids in self._by_digest.items() if own == digest for number in ids
        )

    def next_id(self, context: str = DEFAULT_CONTEXT) -> int:
        """The id of the next schema that is new to a context: one more than the highest that was ever given."""
        return self._highest.get(context, 0) + 1

    def highest_ids(self) -> Mapping[str, int]:
        """{context: the highest id that was ever given}."""
        return dict(self._highest)

    def referenced_by(self, subject: str, number: int, *, deleted: bool = False) -> list[SubjectVersion]:
        """Versions that reference one, sorted."""
        found = [self._versions[one][version] for one, version in sorted(self._referenced.get((subject, number), {}))]
        return [one for one in found if deleted or not one.deleted]

    def __len__(self) -> int:
        return sum(len(versions) for versions in self._versions.values())


def _put(mapping: dict[str | None, Any], key: str | None, value: Any) -> None:
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value

"""Deletes of versions and subjects: softly, which keeps numbers and ids taken, then for good."""

from collections.abc import Sequence

from tidelog.operations.schemas.errors import (
    context_not_empty,
    not_permitted,
    reference_exists,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.records import (
    CONFIG,
    CONTEXT,
    DELETE_SUBJECT,
    MODE,
    NOOP,
    RegistryRecord,
    SubjectVersion,
    tombstone,
)
from tidelog.operations.schemas.settings import check_writable
from tidelog.schemas.base.subject_names import DEFAULT_CONTEXT


def decide_delete_version(
    state: RegistryState, subject: str, number: int, *, permanent: bool = False
) -> tuple[int, list[RegistryRecord]]:
    """Delete a version; -1 is the newest. Returns its number, and the records.

    Raises `RegistryError` 404 where it isn't there, 42206 where another schema references it.
    """
    check_writable(state, subject)
    version = state.version(subject, number, deleted=True if number > 0 else permanent)
    if version is None:
        if not state.has(subject, deleted=True):
            raise subject_not_found(subject)
        raise version_not_found(number)
    if version.deleted and not permanent:
        raise version_soft_deleted(subject, version.version)
    if state.referenced_by(subject, version.version, deleted=permanent):
        raise reference_exists(subject, version.version)
    if not permanent:
        gone = SubjectVersion(subject, version.version, version.id, version.schema, deleted=True)
        return version.version, [gone.record()]
    if not version.deleted:
        raise version_not_soft_deleted(subject, version.version)
    records = [tombstone(subject, version.version)]
    if len(state.versions(subject, deleted=True)) == 1:
        records += _without_settings(state, subject)
    return version.version, [*_highest(state), *records]


def decide_delete_subject(
    state: RegistryState, subject: str, *, permanent: bool = False
) -> tuple[list[int], list[RegistryRecord]]:
    """Delete all versions of a subject. Returns their numbers, and the records.

    Raises `RegistryError` 404 where it isn't there, 42206 where a schema of another subject references it.
    """
    check_writable(state, subject)
    if not state.has(subject, deleted=True):
        raise subject_not_found(subject)
    if not permanent and not state.has(subject):
        raise subject_soft_deleted(subject)
    versions = state.versions(subject, deleted=permanent)
    for version in versions:
        referring = state.referenced_by(subject, version.version, deleted=permanent)
        if any(one.subject != subject for one in referring):
            raise reference_exists(subject, version.version)
    if permanent and any(not version.deleted for version in versions):
        raise subject_not_soft_deleted(subject)
    numbers = [version.version for version in versions]
    if not permanent:
        return numbers, [RegistryRecord(DELETE_SUBJECT, subject, value={"subject": subject, "version": numbers[-1]})]
    # Newest first: one version may reference another one.
    tombstones = [tombstone(subject, number) for number in reversed(numbers)]
    return numbers, [*_highest(state), *tombstones, *_without_settings(state, subject)]


def decide_delete_context(state: RegistryState, context: str) -> list[RegistryRecord]:
    """Delete a context that has no subjects, softly deleted ones either. Raises `RegistryError` 42211 where it has."""
    if context == DEFAULT_CONTEXT:
        raise not_permitted("The default context can't be deleted")
    if state.subjects(f":{context}:", deleted=True):
        raise context_not_empty(context)
    return [RegistryRecord(CONTEXT, context)]


def _without_settings(state: RegistryState, subject: str) -> Sequence[RegistryRecord]:
    kept = ((CONFIG, state.configs), (MODE, state.modes))
    return [RegistryRecord(kind, subject) for kind, settings in kept if subject in settings]


def _highest(state: RegistryState) -> Sequence[RegistryRecord]:
    """Compaction takes a tombstone's schema away; its id must not be given again. Other registries skip the record."""
    return [RegistryRecord(NOOP, value={"ids": dict(state.highest_ids())})]

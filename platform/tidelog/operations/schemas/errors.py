"""What a registry refuses about subjects, versions and settings, with Confluent's error codes."""

from tidelog.log.base.errors import OutcomeUnknownError, RecordTooLargeError, TidelogError
from tidelog.schemas.base.errors import RegistryError, schema_too_large


def subject_not_found(subject: str) -> RegistryError:
    """No version of the subject is there, or only deleted ones."""
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: object) -> RegistryError:
    """The subject has no such version, or it is deleted."""
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(what: object = None) -> RegistryError:
    """No schema of that id, or none that equals the one sent."""
    return RegistryError(40403, "Schema not found" if what is None else f"Schema {what} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    """The subject is soft-deleted already."""
    message = f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
    return RegistryError(40404, message)


def subject_not_soft_deleted(subject: str) -> RegistryError:
    """A permanent delete comes after a soft one."""
    message = f"Subject '{subject}' was not deleted first before being permanently deleted"
    return RegistryError(40405, message)


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    """The version is soft-deleted already."""
    message = f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently"
    return RegistryError(40406, message)


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    """A permanent delete comes after a soft one."""
    message = f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    return RegistryError(40407, message)


def no_compatibility_configured(subject: str) -> RegistryError:
    """The subject has no configuration of its own."""
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode_configured(subject: str) -> RegistryError:
    """The subject has no mode of its own."""
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(message: str) -> RegistryError:
    """A schema that the subject's compatibility level refuses."""
    return RegistryError(40901, message)


def invalid_version(version: object) -> RegistryError:
    """A version that is no number from 1 to 2^31-1, nor "latest"."""
    message = (
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"'
    )
    return RegistryError(42202, message)


def invalid_mode(mode: object) -> RegistryError:
    """A mode that doesn't exist."""
    return RegistryError(42204, f"Invalid mode {mode!r}. Valid values are READWRITE, READONLY, IMPORT and FORWARD.")


def not_permitted(message: str) -> RegistryError:
    """What the subject's mode, or the state of the registry, forbids."""
    return RegistryError(42205, message)


def reference_exists(subject: str, version: int) -> RegistryError:
    """A version that another schema references can't be deleted."""
    return RegistryError(42206, f"One or more references exist to the schema {subject} version {version}.")


def invalid_subject(subject: str) -> RegistryError:
    """A name that no subject may have."""
    return RegistryError(42208, f"The specified subject '{subject}' is not valid.")


def context_not_empty(context: str) -> RegistryError:
    """A context with subjects can't be deleted."""
    return RegistryError(42211, f"The specified context '{context}' is not empty.")


def store_failure(error: TidelogError) -> RegistryError:
    """What keeps a lake from answering, with the code that a registry has for it."""
    if isinstance(error, RecordTooLargeError):
        return schema_too_large(f"Write failed because schema is too large: {error}")
    return RegistryError(50002 if isinstance(error, OutcomeUnknownError) else 50001, str(error))

"""Names that subjects may have, the topics that they belong to, and what settings are kept under."""

from typing import Final

from tidelog.operations.schemas.errors import invalid_subject
from tidelog.schemas.base.subject_names import DEFAULT_CONTEXT, SubjectName

# The names under which other registries keep settings of their own.
_RESERVED: Final = ("__GLOBAL", "__EMPTY")
# The parts of records that have schemas.
_FIELDS: Final = ("key", "value")


def checked(text: str) -> str:
    """A subject's name in its one form. Raises `RegistryError` 42208 for names that none may have."""
    subject = SubjectName.of(text)
    if subject.name.strip() == "" or subject.name in _RESERVED or any(not one.isprintable() for one in text):
        raise invalid_subject(text)
    return str(subject)


def settings_place(text: str, context: str = DEFAULT_CONTEXT) -> str | None:
    """What settings are kept under, of a name in a context: a subject, a context (`:.context:`), or all (None).

    Raises `RegistryError` 42208 for what names neither.
    """
    named = text if text.startswith(":.") else str(SubjectName(context, text))
    subject = SubjectName.of(named)
    return subject.context_settings if text.startswith(":.") and not subject.name else checked(named)


def subject_named(text: str, context: str = DEFAULT_CONTEXT) -> str:
    """The subject of a name in a context. Raises `RegistryError` 42208 for what names none."""
    place = settings_place(text, context)
    if place is None or not SubjectName.of(place).name:
        raise invalid_subject(text)
    return place


def subject_of(topic: str, field: str) -> str:
    """The subject that has the schemas of a topic's keys or values, unless another one is named."""
    return f"{topic}-{field}"


def topic_of(subject: str) -> str:
    """The topic as which a subject is asked about.

    That of `orders-key` or `orders-value` is `orders`, that of any other one has its name; one of another context is
    with it (`:.context:orders`).
    """
    for field in _FIELDS:
        ending = subject_of("", field)
        if subject.endswith(ending) and subject != ending:
            return subject.removesuffix(ending)
    return subject

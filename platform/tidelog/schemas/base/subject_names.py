"""Names of subjects, and the contexts that they are in (Confluent's "Schema Contexts")."""

from dataclasses import dataclass
from typing import Final

DEFAULT_CONTEXT: Final = "."
GLOBAL_CONTEXT: Final = ".__GLOBAL"


@dataclass(frozen=True, slots=True, order=True)
class SubjectName:
    """A subject of a context. `context` begins with a point, and is only one for the default; "" names the context."""

    context: str
    name: str

    @classmethod
    def of(cls, text: str) -> "SubjectName":
        """`:.context:name`, or a name of the default context."""
        if not text.startswith(":."):
            return cls(DEFAULT_CONTEXT, text)
        context, _, name = text[1:].partition(":")
        return cls(context, name)

    def __str__(self) -> str:
        return self.name if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.name}"

    def inside(self, reference: str) -> str:
        """A subject that this one references: of the same context unless it names one."""
        if reference.startswith(":.") or self.context == DEFAULT_CONTEXT:
            return str(SubjectName.of(reference))
        return str(SubjectName(self.context, reference))

    @property
    def context_settings(self) -> str | None:
        """What the settings of the subject's context are kept under; None for the default one, the global settings."""
        return None if self.context == DEFAULT_CONTEXT else f":{self.context}:"


def begins_with(subject: str, prefix: str) -> bool:
    """Whether a subject begins with a prefix: of a name, or of a name in a context; `:*:` stands for all contexts."""
    own = SubjectName.of(subject)
    if prefix.startswith(":*:"):
        return own.name.startswith(prefix.removeprefix(":*:"))
    wanted = SubjectName.of(prefix)
    return own.context == wanted.context and own.name.startswith(wanted.name)

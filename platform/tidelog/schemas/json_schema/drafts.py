"""The drafts of JSON Schema, and which one a schema is written in."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import jsonschema_rs as rs

from tidelog.schemas.base.json_text import Json


class SchemaDraft(NamedTuple):
    """A draft: its number, or from 2019 on its year; what a `$schema` that names it has.

    `validator`: what tests values by a schema of the draft; `dialect`: what its library calls the draft.
    """

    number: int
    word: str
    validator: type[rs.Validator]
    dialect: int

    @property
    def meta(self) -> str:
        """The address of the schema that all schemas of the draft fit."""
        new = f"https://json-schema.org/draft/{self.word}/schema"
        return new if self.number >= 2019 else f"http://json-schema.org/{self.word}/schema#"


_USUAL: Final = SchemaDraft(7, "draft-07", rs.Draft7Validator, rs.Draft7)
_OTHERS: Final = (
    SchemaDraft(4, "draft-04", rs.Draft4Validator, rs.Draft4),
    SchemaDraft(6, "draft-06", rs.Draft6Validator, rs.Draft6),
    SchemaDraft(2019, "2019-09", rs.Draft201909Validator, rs.Draft201909),
    SchemaDraft(2020, "2020-12", rs.Draft202012Validator, rs.Draft202012),
)


def draft_of(root: Json) -> SchemaDraft:
    """The draft that a schema's `$schema` names, 7 where it names none that is known."""
    named = root.get("$schema") if isinstance(root, Mapping) else None
    return next((draft for draft in _OTHERS if isinstance(named, str) and draft.word in named), _USUAL)

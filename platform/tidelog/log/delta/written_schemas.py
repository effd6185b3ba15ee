"""The schemas of a typed topic's values, as its table's property holds them (docs/format.md, section 3)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

KINDS: Final = ("avro", "json", "protobuf")
_KNOWN: Final = frozenset({"id", "type", "schema", "references", "subject", "version", "guid"})
_INT: Final = range(-(2**31), 2**31)


@dataclass(frozen=True, slots=True)
class WrittenSchema:
    """A schema that values of a topic were written with.

    `id`: the registry's, from 1; -1, -2 ... of schemas that the topic's configuration held. `kind`: one of `KINDS`.
    `references`: (name, text) of the schemas that it needs, those that others need first. `subject` and `version`:
    where it was found, None for the configuration; `guid`: the registry's other id for it, 16 bytes in hex.
    """

    id: int
    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()
    subject: str | None = None
    version: int | None = None
    guid: str | None = None

    def json(self) -> dict[str, Any]:
        """As an element of the property's list."""
        parts: dict[str, Any] = {"id": self.id, "type": self.kind.upper(), "schema": self.text}
        if self.references:
            parts["references"] = [{"name": name, "schema": text} for name, text in self.references]
        found = {"subject": self.subject, "version": self.version, "guid": self.guid}
        return parts | {name: value for name, value in found.items() if value is not None}

    @property
    def meaning(self) -> tuple[str, str, tuple[tuple[str, str], ...], bool]:
        """What decides how values are read: kind, text, references, and whether values are bare payloads."""
        return self.kind, self.text, self.references, self.id < 0


def written_schemas_text(schemas: Iterable[WrittenSchema]) -> str:
    """The property's text: a JSON list by id."""
    return orjson.dumps([one.json() for one in sorted(schemas, key=lambda one: one.id)]).decode()


def parse_written_schemas(text: str) -> tuple[WrittenSchema, ...]:
    """The schemas that the property holds, by id. Raises `ValueError` with what is wrong, as the end of a sentence."""
    try:
        listed = orjson.loads(text)
    except orjson.JSONDecodeError as e:
        raise ValueError(f"it is no JSON ({e})") from None
    if not isinstance(listed, list):
        raise ValueError("it is no JSON list")
    schemas = tuple(_parse(number, body) for number, body in enumerate(listed))
    ids = [one.id for one in schemas]
    if ids != sorted(set(ids)):
        raise ValueError("its ids do not rise from one to the next")
    return schemas


def _parse(number: int, body: Any) -> WrittenSchema:
    where = f"its element {number}"
    if not isinstance(body, dict):
        raise ValueError(f"{where} is no JSON object")
    strange = sorted(body.keys() - _KNOWN)
    if strange:
        raise ValueError(f"{where} has {strange[0]!r}, which is not known")
    number_of = body.get("id")
    if type(number_of) is not int or number_of not in _INT or number_of == 0:
        raise ValueError(f"{where} has the id {number_of!r}, which is no INT but 0")
    kinds = {kind.upper(): kind for kind in KINDS}
    kind = body.get("type")
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"{where} has the type {kind!r}, which is none of {', '.join(kinds)}")
    for name in ("schema", "subject", "guid"):
        if not isinstance(body.get(name, None if name == "schema" else ""), str):
            raise ValueError(f"{where} has no text {name!r}")
    version = body.get("version")
    if version is not None and (type(version) is not int or version < 1):
        raise ValueError(f"{where} has the version {version!r}, which is no number from 1")
    guid = body.get("guid")
    if guid is not None and not _is_guid(guid):
        raise ValueError(f"{where} has the guid {guid!r}, which is no 32 hexadecimal digits")
    references = body.get("references", [])
    return WrittenSchema(
        number_of, kinds[kind], body["schema"], _references(where, references), body.get("subject"), version, guid
    )


def _is_guid(text: str) -> bool:
    return len(text) == 32 and not text.strip("0123456789abcdef")


def _references(where: str, listed: Any) -> tuple[tuple[str, str], ...]:
    pairs: Sequence[Any] = listed if isinstance(listed, list) else [None]
    if any(
        not isinstance(pair, dict)
        or pair.keys() != {"name", "schema"}
        or not all(isinstance(v, str) for v in pair.values())
        for pair in pairs
    ):
        raise ValueError(f"{where} has references that are no list of a name and a schema each")
    return tuple((one["name"], one["schema"]) for one in pairs)

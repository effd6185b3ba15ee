"""Subjects of a lake's registry, made by the registry itself, for tests of typed topics."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pyarrow as pa

from tidelog.log.lake import Lake
from tidelog.operations.schemas.deleting import decide_delete_subject, decide_delete_version
from tidelog.operations.schemas.registering import Registration, decide_register
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.operations.schemas.settings import decide_config
from tidelog.schemas.base.framing import framed
from tidelog.schemas.base.model import Reference, Schema, SchemaKind


def avro_record(**fields: Any) -> str:
    """An Avro record `R` with these fields, as the registry writes it."""
    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    return orjson.dumps({"type": "record", "name": "R", "fields": listed}).decode()


class Subjects:
    """A registry over a lake."""

    def __init__(self, lake: Lake) -> None:
        self.log = RegistryLog(lake)

    def register(
        self, subject: str, text: str, kind: str = "AVRO", references: Sequence[tuple[str, str, int]] = ()
    ) -> int:
        """The id of a schema in a subject; whether it is compatible is not asked."""
        schema = Schema(text, SchemaKind(kind), tuple(Reference(*one) for one in references))

        def decide(state: Any) -> Any:
            found = decide_register(state, Registration(subject, schema))
            return found.version.id, found.records

        return int(self.log.decide(decide))

    def no_rules(self) -> "Subjects":
        """Any schema is compatible from now on."""
        self.log.decide(lambda state: decide_config(state, None, {"compatibility": "NONE"}))
        return self

    def alias(self, subject: str, of: str) -> None:
        """Make one subject another name of another one."""
        self.log.decide(lambda state: decide_config(state, subject, {"alias": of}))

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> None:
        """Delete a version, or all of a subject's."""

        def decide(state: Any) -> Any:
            if version is None:
                return decide_delete_subject(state, subject, permanent=permanent)
            return decide_delete_version(state, subject, version, permanent=permanent)

        self.log.decide(decide)

    def guid(self, number: int) -> bytes:
        """The guid of an id in the default context."""
        schema: Schema = self.log.look(lambda state: state.by_id(number))
        return schema.digest()


def framed_as(*ids: int, payload: Callable[[int], bytes] = lambda row: b"\x02") -> pa.Table:
    """A table whose values are of the schemas with these ids, 0 for a bare payload."""
    payloads = pa.array([payload(row) for row in range(len(ids))], pa.binary())
    return pa.table({"value": framed(payloads, pa.array(ids).to_numpy())})

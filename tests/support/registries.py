"""A registry's state in tests: decisions, applied as every registry applies them."""

import json

import pytest

from tidelog.operations.schemas.deleting import decide_delete_subject, decide_delete_version
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.records import read
from tidelog.operations.schemas.registering import Registration, decide_register
from tidelog.operations.schemas.settings import decide_config, decide_mode
from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.base.model import Schema, SchemaKind

INT, LONG, TEXT = '"int"', '"long"', '"string"'


class Registry:
    """A state, and all records that made it, as bytes."""

    def __init__(self):
        self.state = RegistryState()
        self.log = []

    def take(self, records):
        pairs = [(record.key(), record.payload()) for record in records]
        self.log += pairs
        self.state.take(read(key, value) for key, value in pairs)

    def compacted(self):
        """A state folded from the newest record of each key, without tombstones."""
        newest = {key: (i, value) for i, (key, value) in enumerate(self.log)}
        state = RegistryState()
        kept = sorted((i, key, value) for key, (i, value) in newest.items() if value is not None)
        state.take(read(key, value) for _, key, value in kept)
        return state

    def register(self, subject, text, kind=SchemaKind.AVRO, references=(), metadata=None, rules=None, **more):
        schema = Schema(text, kind, tuple(references), metadata, rules)
        found = decide_register(self.state, Registration(subject, schema, **more))
        self.take(found.records)
        return found.version.id, found.version.version

    def delete_version(self, subject, version, **more):
        number, records = decide_delete_version(self.state, subject, version, **more)
        self.take(records)
        return number

    def delete_subject(self, subject, **more):
        numbers, records = decide_delete_subject(self.state, subject, **more)
        self.take(records)
        return numbers

    def config(self, subject, **change):
        self.take(decide_config(self.state, subject, change)[1])

    def mode(self, subject, mode, **more):
        self.take(decide_mode(self.state, subject, mode, **more))


def record(*fields, name="r"):
    listed = [{"name": field, "type": "string", "default": ""} for field in fields]
    return json.dumps({"type": "record", "name": name, "fields": listed})


def refused(code):
    return pytest.raises(RegistryError, check=lambda error: error.code == code)

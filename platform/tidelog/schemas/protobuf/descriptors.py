"""Descriptors of Protobuf, and messages by their places in a file."""

from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from tidelog.schemas.base.errors import SchemaError


def pool_of(files: Iterable[FileDescriptorProto]) -> Any:
    """A pool of descriptors, given with those that others import before them. Raises `SchemaError`."""
    pool = DescriptorPool()
    try:
        for file in files:
            pool.Add(file)
    except TypeError as error:
        raise SchemaError(f"The schema breaks Protobuf's rules: {error}.") from error
    return pool


def message_at(file: Any, place: Sequence[int]) -> Any:
    """The descriptor of a message by its place in its file; None where the file has none there."""
    message, inside = None, [*file.message_types_by_name.values()]
    for index in place:
        if not 0 <= index < len(inside):
            return None
        message = inside[index]
        inside = message.nested_types
    return message


def place_of(descriptor: Any) -> tuple[int, ...]:
    """Where a message is: its index in its file, or in each message that it is inside of, outermost first."""
    place: list[int] = []
    while descriptor.containing_type is not None:
        inner = [one.name for one in descriptor.containing_type.nested_types]
        place.append(inner.index(descriptor.name))
        descriptor = descriptor.containing_type
    place.append([*descriptor.file.message_types_by_name].index(descriptor.name))
    return tuple(reversed(place))

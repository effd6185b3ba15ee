"""What a client may do with a resource, as answers say it."""

from typing import Final

from tidelog.admin.access import operations_told
from tidelog.admin.enums import ResourceType

# The value of a field of operations that the client did not ask for.
NOT_ASKED: Final = -(2**31)


def operations(kind: ResourceType, asked: bool) -> int:
    """The operations that a client may do, as Kafka's bit field, where they were asked for.

    They are all of them. Source: Kafka's `AclEntry.supportedOperations`, `Utils.to32BitField`.
    """
    told = operations_told(kind, asked)
    return NOT_ASKED if told is None else sum(1 << operation.value for operation in told)

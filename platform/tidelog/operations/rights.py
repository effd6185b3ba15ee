"""The right that each operation of a lake needs: Kafka's operations on Kafka's resources, one row for each.

Brokers, the registry, workers and the console look up here what their requests need, and refuse in their own words.
Source: "Authorization and ACLs" of Kafka's documentation, `KafkaApis` and `ControllerApis` (kafka 4.2).
"""

# ruff: noqa: PIE796 - operations that need the same are rows of their own

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Self

from tidelog.access.authorizer import AclVerdict, Sender
from tidelog.access.in_force import AccessInForce
from tidelog.access.model import CLUSTER_NAME, AclOperation, AclResource
from tidelog.operations.schemas.subjects import topic_of

# The argument that names a subject.
_SUBJECT: Final = "subject"


@dataclass(frozen=True, slots=True)
class AskedRight:
    """What access is asked: whether an operation may be done to the resource of a name.

    `everywhere`: an ACL that allows it for the cluster allows it for all resources of the type.
    """

    operation: AclOperation
    resource: AclResource
    name: str
    everywhere: bool = False

    def verdict(self, access: AccessInForce, sender: Sender) -> AclVerdict:
        """Whether the sender may do it, and the ACL that says so."""
        if _for_all(self, access, sender):
            return AclVerdict(True)
        return access.verdict(sender, self.operation, self.resource, self.name)


@dataclass(frozen=True, slots=True)
class Need:
    """What an operation needs for the resource that an argument names, the cluster for "".

    `everywhere`: as `AskedRight` has it.
    """

    argument: str
    resource: AclResource
    operation: AclOperation
    everywhere: bool = False

    def for_all(self, access: AccessInForce, sender: Sender) -> bool:
        """Whether the sender may do it to all resources of the type, by an ACL of the cluster."""
        return _for_all(self, access, sender)

    def for_any(self, access: AccessInForce, sender: Sender) -> bool:
        """Whether there may be a resource of the type to which the sender may do it."""
        return self.for_all(access, sender) or access.may_any(sender, self.operation, self.resource)


def _for_all(asked: AskedRight | Need, access: AccessInForce, sender: Sender) -> bool:
    return asked.everywhere and access.may_everywhere(sender, asked.operation)


def _topic(operation: AclOperation, *, everywhere: bool = False) -> Need:
    return Need("topic", AclResource.TOPIC, operation, everywhere)


def _group(operation: AclOperation, *, everywhere: bool = False) -> Need:
    return Need("group", AclResource.GROUP, operation, everywhere)


def _transactional_id(operation: AclOperation) -> Need:
    return Need("transactional_id", AclResource.TRANSACTIONAL_ID, operation)


def _subject(operation: AclOperation) -> Need:
    """A subject is asked about by the topic that has its records: what may read or write that may read its schemas."""
    return Need(_SUBJECT, AclResource.TOPIC, operation)


def _cluster(operation: AclOperation) -> Need:
    return Need("", AclResource.CLUSTER, operation)


_Op = AclOperation


class Right(Enum):
    """What each operation needs, for each argument that a request names: what it leaves out, it needs nothing for.

    `needs`: by argument.
    """

    needs: Mapping[str, Need]

    # --- records; a producer names its transactional id where it has one
    READ_RECORDS = _topic(_Op.READ)
    WRITE_RECORDS = _topic(_Op.WRITE), _transactional_id(_Op.WRITE)
    DELETE_RECORDS = _topic(_Op.DELETE)
    DESCRIBE_PRODUCERS = _topic(_Op.READ)
    # A producer without a transactional id needs this, or to write to any topic (KIP-679).
    WRITE_IDEMPOTENTLY = _cluster(_Op.IDEMPOTENT_WRITE)

    # --- topics, and configurations by whose they are
    DESCRIBE_TOPIC = _topic(_Op.DESCRIBE)
    CREATE_TOPIC = _topic(_Op.CREATE, everywhere=True)
    DELETE_TOPIC = _topic(_Op.DELETE, everywhere=True)
    ADD_PARTITIONS = _topic(_Op.ALTER)
    DESCRIBE_CONFIG = (
        _topic(_Op.DESCRIBE_CONFIGS),
        _group(_Op.DESCRIBE_CONFIGS),
        _subject(_Op.DESCRIBE_CONFIGS),
        _cluster(_Op.DESCRIBE_CONFIGS),
    )
    ALTER_CONFIG = (
        _topic(_Op.ALTER_CONFIGS),
        _group(_Op.ALTER_CONFIGS),
        _subject(_Op.ALTER_CONFIGS),
        _cluster(_Op.ALTER_CONFIGS),
    )
    LIST_CONFIGS = _cluster(_Op.DESCRIBE_CONFIGS)  # the names of what has a configuration

    # --- groups
    LIST_GROUPS = _group(_Op.DESCRIBE, everywhere=True)
    DESCRIBE_GROUP = _group(_Op.DESCRIBE)
    JOIN_GROUP = _group(_Op.READ)  # and stay in it, and leave it
    DELETE_GROUP = _group(_Op.DELETE)
    FETCH_OFFSETS = _group(_Op.DESCRIBE), _topic(_Op.DESCRIBE)
    COMMIT_OFFSETS = _group(_Op.READ), _topic(_Op.READ), _transactional_id(_Op.WRITE)
    DELETE_OFFSETS = _group(_Op.DELETE), _topic(_Op.READ)

    # --- transactions
    USE_TRANSACTIONAL_ID = _transactional_id(_Op.WRITE)  # begin and end its transactions
    ADD_TO_TRANSACTION = _transactional_id(_Op.WRITE), _topic(_Op.WRITE), _group(_Op.READ)
    DESCRIBE_TRANSACTION = _transactional_id(_Op.DESCRIBE)
    ABORT_TRANSACTION = _cluster(_Op.ALTER)  # another one's, as an operator
    FIND_COORDINATOR = _group(_Op.DESCRIBE), _transactional_id(_Op.DESCRIBE)

    # --- the cluster
    DESCRIBE_CLUSTER = _cluster(_Op.DESCRIBE)
    ALTER_CLUSTER = _cluster(_Op.ALTER)
    ACT_AS_BROKER = _cluster(_Op.CLUSTER_ACTION)
    RUN_MAINTENANCE = _cluster(_Op.ALTER)

    # --- access
    DESCRIBE_ACLS = _cluster(_Op.DESCRIBE)
    ALTER_ACLS = _cluster(_Op.ALTER)
    DESCRIBE_USERS = _cluster(_Op.DESCRIBE)
    ALTER_USERS = _cluster(_Op.ALTER)
    DESCRIBE_QUOTAS = _cluster(_Op.DESCRIBE_CONFIGS)
    ALTER_QUOTAS = _cluster(_Op.ALTER_CONFIGS)

    # --- schemas; what a schema references is another subject that is read
    READ_SCHEMA = _subject(_Op.DESCRIBE)
    REGISTER_SCHEMA = _subject(_Op.WRITE)
    DELETE_SCHEMA = _subject(_Op.DELETE)
    LIST_CONTEXTS = _cluster(_Op.DESCRIBE)
    DELETE_CONTEXT = _cluster(_Op.ALTER)

    # --- connectors, which have the worker's rights, and whose configurations may hold passwords
    DESCRIBE_CONNECTOR = _cluster(_Op.DESCRIBE)
    DESCRIBE_CONNECTOR_CONFIG = _cluster(_Op.DESCRIBE_CONFIGS)
    ALTER_CONNECTOR = _cluster(_Op.ALTER)
    DESCRIBE_LOGGERS = _cluster(_Op.DESCRIBE_CONFIGS)
    ALTER_LOGGERS = _cluster(_Op.ALTER_CONFIGS)

    def __new__(cls, *needs: Need) -> Self:
        """A row with a number of its own: two with one value would be one member."""
        right = object.__new__(cls)
        right._value_ = len(cls.__members__)
        right.needs = {need.argument: need for need in needs}
        return right

    @property
    def only(self) -> Need:
        """The need of an operation that is about one resource. Raises `ValueError` for another one."""
        (need,) = self.needs.values()
        return need

    def asked(self, **named: str) -> AskedRight:
        """What access is asked of the resource that an argument names; of the cluster, where none is named.

        Each argument is asked about by itself: raises `ValueError` for several, `KeyError` for one that the operation
        has not.
        """
        ((argument, name),) = named.items() or [("", CLUSTER_NAME)]
        need = self.needs[argument]
        resource = topic_of(name) if argument == _SUBJECT else name
        return AskedRight(need.operation, need.resource, resource, need.everywhere)

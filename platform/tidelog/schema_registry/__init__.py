"""`confluent_kafka.schema_registry` under tidelog's name; works without a server when it is given a lake.

The code is in `clients/schema_registry`.
"""

# ruff: noqa: I001 - one import for each module, with the aliases that name what is public

from tidelog.clients.schema_registry.associations import (
    Association as Association,
    AssociationCreateOrUpdateInfo as AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest as AssociationCreateOrUpdateRequest,
    AssociationInfo as AssociationInfo,
    AssociationResponse as AssociationResponse,
)
from tidelog.clients.schema_registry.asynchronous import AsyncSchemaRegistryClient as AsyncSchemaRegistryClient
from tidelog.clients.schema_registry.client import SchemaRegistryClient as SchemaRegistryClient
from tidelog.clients.schema_registry.framing import (
    dual_schema_id_deserializer as dual_schema_id_deserializer,
    header_schema_id_serializer as header_schema_id_serializer,
    prefix_schema_id_deserializer as prefix_schema_id_deserializer,
    prefix_schema_id_serializer as prefix_schema_id_serializer,
)
from tidelog.clients.schema_registry.metadata import (
    Metadata as Metadata,
    MetadataProperties as MetadataProperties,
    MetadataTags as MetadataTags,
    Rule as Rule,
    RuleKind as RuleKind,
    RuleMode as RuleMode,
    RuleParams as RuleParams,
    RuleSet as RuleSet,
)
from tidelog.clients.schema_registry.model import (
    ConfigCompatibilityLevel as ConfigCompatibilityLevel,
    RegisteredSchema as RegisteredSchema,
    Schema as Schema,
    SchemaReference as SchemaReference,
    SchemaRegistryError as SchemaRegistryError,
    SchemaVersion as SchemaVersion,
    ServerConfig as ServerConfig,
)
from tidelog.clients.schema_registry.strategies import (
    record_subject_name_strategy as record_subject_name_strategy,
    reference_subject_name_strategy as reference_subject_name_strategy,
    topic_record_subject_name_strategy as topic_record_subject_name_strategy,
    topic_subject_name_strategy as topic_subject_name_strategy,
)

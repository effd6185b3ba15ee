"""`confluent_kafka.schema_registry` under tidelog's name; works without a server when it is given a lake."""

# ruff: noqa: I001 - one import for each module, with the aliases that name what is public

from tidelog.schema_registry.client import SchemaRegistryClient as SchemaRegistryClient
from tidelog.schema_registry.model import (
    RegisteredSchema as RegisteredSchema,
    Schema as Schema,
    SchemaReference as SchemaReference,
    SchemaRegistryError as SchemaRegistryError,
    ServerConfig as ServerConfig,
)
from tidelog.schema_registry.strategies import (
    record_subject_name_strategy as record_subject_name_strategy,
    topic_record_subject_name_strategy as topic_record_subject_name_strategy,
    topic_subject_name_strategy as topic_subject_name_strategy,
)

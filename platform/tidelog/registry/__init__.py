"""A schema registry: Confluent's rules and API over the topic `_schemas` of a lake."""

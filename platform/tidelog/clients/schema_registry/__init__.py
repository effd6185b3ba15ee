"""Clients of schema registries, and serializers. Users import them from `tidelog.schema_registry`."""

"""Kafka's own integration tests of its Java consumer, PlaintextConsumer*, of the jars of tests that Kafka publishes."""

from compat.java_consumers.published_tests import SUITE, build, outcomes

__all__ = ["SUITE", "build", "outcomes"]

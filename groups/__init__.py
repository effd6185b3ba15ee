"""Consumer groups: who reads which partition, by Kafka's rules."""

from tidelog.groups.assignors import ASSIGNORS, assign

__all__ = ["ASSIGNORS", "assign"]

"""Consumer groups: which member reads which partition, by Kafka's rules."""

from tidelog.groups.assignors.assign import ASSIGNORS, assign

__all__ = ["ASSIGNORS", "assign"]

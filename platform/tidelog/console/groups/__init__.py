"""tidelog.console.groups: consumer groups, their lag, and resets of their offsets."""

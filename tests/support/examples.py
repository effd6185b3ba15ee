"""How many examples a property that takes long is tried with: a part of those of other properties in the same run."""

from hypothesis import settings


def one_in(number: int) -> settings:
    """One example where other properties have this many; at least one."""
    return settings(max_examples=max(1, settings().max_examples // number))

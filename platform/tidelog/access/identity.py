"""A principal, once it is known."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """A principal that has shown its credentials. `until_s`: when they end, s since the epoch; None for never."""

    principal: str
    until_s: float | None = None

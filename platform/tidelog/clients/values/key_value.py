"""The types of keys and values, for type checkers: of messages, and of the clients that make objects of bytes."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:  # a default of a type variable means nothing to a running program
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

__all__ = ["K", "V"]

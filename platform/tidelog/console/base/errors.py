"""Refusals of the console, as statuses of HTTP."""

from tidelog.log.base.errors import TidelogError


class ConsoleError(TidelogError):
    """A request that the console refuses. `status`: of HTTP; `code`: what the answer names, the status unless given."""

    def __init__(self, status: int, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = status if code is None else code


def bad(message: str) -> ConsoleError:
    """A request that no console could answer."""
    return ConsoleError(400, message)

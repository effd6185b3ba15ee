"""What servers of HTTP refuse."""

from tidelog.log.base.errors import TidelogError


class RequestRefusedError(TidelogError):
    """A request that a server does not work on. `status`: of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

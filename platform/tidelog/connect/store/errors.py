"""Refusals of the REST API, which the store's rules raise, too."""

from tidelog.connect.data.errors import ConnectError


class RestError(ConnectError):
    """A request that is refused. `status`: of HTTP, which is also Connect's error code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def connector_not_found(name: str) -> RestError:
    """No connector has the name."""
    return RestError(404, f"Connector {name} not found")


def task_not_found(name: str, task: int) -> RestError:
    """The connector has no task of the number."""
    return RestError(404, f"Task {name}-{task} not found")

"""Which right each request of the REST API needs: Kafka's operations on the cluster.

Connectors read and write topics with the worker's rights, and a configuration may hold passwords: a client that changes
connectors can do what the worker can, so that such rights are the cluster's, not a topic's.
"""

from collections.abc import Mapping
from typing import Final

from tidelog.access.model import CLUSTER_NAME, AclOperation, AclResource
from tidelog.connect.store.errors import RestError
from tidelog.server.logins import May

_SEE, _CONFIGS, _CHANGE = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER

# {route: the operation, None: every client that is logged in}
RULES: Final[Mapping[str, AclOperation | None]] = {
    "GET ": None,
    "GET health": None,
    "GET connectors": _CONFIGS,  # `expand=info` has configurations
    "POST connectors": _CHANGE,
    "GET connectors/{name}": _CONFIGS,
    "DELETE connectors/{name}": _CHANGE,
    "GET connectors/{name}/config": _CONFIGS,
    "PUT connectors/{name}/config": _CHANGE,
    "PATCH connectors/{name}/config": _CHANGE,
    "GET connectors/{name}/status": _SEE,
    "GET connectors/{name}/tasks": _CONFIGS,
    "GET connectors/{name}/tasks-config": _CONFIGS,
    "GET connectors/{name}/tasks/{task}/status": _SEE,
    "POST connectors/{name}/tasks/{task}/restart": _CHANGE,
    "POST connectors/{name}/restart": _CHANGE,
    "PUT connectors/{name}/pause": _CHANGE,
    "PUT connectors/{name}/resume": _CHANGE,
    "PUT connectors/{name}/stop": _CHANGE,
    "GET connectors/{name}/topics": _SEE,
    "PUT connectors/{name}/topics/reset": _CHANGE,
    "GET connectors/{name}/offsets": _SEE,
    "PATCH connectors/{name}/offsets": _CHANGE,
    "DELETE connectors/{name}/offsets": _CHANGE,
    "GET connector-plugins": None,
    "GET connector-plugins/{plugin}/config": None,
    "PUT connector-plugins/{plugin}/config/validate": _CHANGE,  # it may connect to where the configuration says
    "GET admin/loggers": _CONFIGS,
    "GET admin/loggers/{logger}": _CONFIGS,
    "PUT admin/loggers/{logger}": AclOperation.ALTER_CONFIGS,
}


def require_right(may: May | None, route: str) -> None:
    """Refuse a request that the client may not send: `RestError` 403. `may`: None: it may do everything."""
    operation = RULES[route]
    if may is None or operation is None or may(operation, AclResource.CLUSTER, CLUSTER_NAME):
        return
    raise RestError(403, f"User is denied operation {operation.name} on the cluster.")

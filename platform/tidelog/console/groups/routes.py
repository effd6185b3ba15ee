"""Which requests are about groups."""

from typing import Final

from tidelog.access.model import AclOperation
from tidelog.console.base.calls import for_all, of_group
from tidelog.console.groups.changes import delete, reset
from tidelog.console.groups.listing import group, groups, history
from tidelog.server.routes import Route

# A reset asks for READ of the topics, too, as a commit does (Kafka's OffsetCommit).
GROUP_ROUTES: Final = (
    Route("GET", "/api/groups", groups, for_all),
    Route("GET", "/api/groups/{group}", group, of_group(AclOperation.DESCRIBE)),
    Route("GET", "/api/groups/{group}/history", history, of_group(AclOperation.DESCRIBE)),
    Route("POST", "/api/groups/{group}/reset", reset, of_group(AclOperation.READ), reads=True),
    Route("DELETE", "/api/groups/{group}", delete, of_group(AclOperation.DELETE)),
)

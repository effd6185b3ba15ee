"""Which requests are about groups."""

from typing import Final

from tidelog.console.base.calls import for_all, needs
from tidelog.console.groups.changes import delete, reset
from tidelog.console.groups.listing import group, groups, history
from tidelog.operations.rights import Right
from tidelog.server.routes import Route

# A reset is a commit: it asks for the right to the topics, too.
GROUP_ROUTES: Final = (
    Route("GET", "/api/groups", groups, for_all),
    Route("GET", "/api/groups/{group}", group, needs(Right.DESCRIBE_GROUP)),
    Route("GET", "/api/groups/{group}/history", history, needs(Right.DESCRIBE_GROUP)),
    Route("POST", "/api/groups/{group}/reset", reset, needs(Right.COMMIT_OFFSETS), reads=True),
    Route("DELETE", "/api/groups/{group}", delete, needs(Right.DELETE_GROUP)),
)

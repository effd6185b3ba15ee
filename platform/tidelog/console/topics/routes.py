"""Which requests are about the lake as a whole and about topics."""

from typing import Final

from tidelog.console.base.calls import for_all, needs
from tidelog.console.topics import details
from tidelog.console.topics.listing import create_topic, delete_topic, topics
from tidelog.console.topics.overview import history, overview, requests, session
from tidelog.operations.rights import Right
from tidelog.server.routes import Route

_TOPIC: Final = "/api/topics/{topic}"

TOPIC_ROUTES: Final = (
    Route("GET", "/api/session", session, for_all),
    Route("GET", "/api/overview", overview, for_all),
    Route("GET", "/api/overview/history", history, for_all),
    Route("GET", "/api/requests", requests, for_all),
    Route("GET", "/api/topics", topics, for_all),
    Route("POST", "/api/topics", create_topic, for_all),
    Route("GET", _TOPIC, details.topic, needs(Right.DESCRIBE_TOPIC)),
    Route("PATCH", _TOPIC, details.grow, needs(Right.ADD_PARTITIONS)),
    Route("DELETE", _TOPIC, delete_topic, needs(Right.DELETE_TOPIC)),
    Route("GET", f"{_TOPIC}/config", details.config, needs(Right.DESCRIBE_CONFIG)),
    Route("PATCH", f"{_TOPIC}/config", details.change_config, needs(Right.ALTER_CONFIG)),
    Route("GET", f"{_TOPIC}/history", details.history, needs(Right.DESCRIBE_TOPIC)),
    Route("GET", f"{_TOPIC}/consumers", details.consumers, needs(Right.DESCRIBE_TOPIC)),
)

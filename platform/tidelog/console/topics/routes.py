"""Which requests are about the lake as a whole and about topics."""

from typing import Final

from tidelog.access.model import AclOperation
from tidelog.console.base.calls import for_all, of_topic
from tidelog.console.topics import details
from tidelog.console.topics.listing import create_topic, delete_topic, topics
from tidelog.console.topics.overview import history, overview, requests, session
from tidelog.server.routes import Route

_TOPIC: Final = "/api/topics/{topic}"

TOPIC_ROUTES: Final = (
    Route("GET", "/api/session", session, for_all),
    Route("GET", "/api/overview", overview, for_all),
    Route("GET", "/api/overview/history", history, for_all),
    Route("GET", "/api/requests", requests, for_all),
    Route("GET", "/api/topics", topics, for_all),
    Route("POST", "/api/topics", create_topic, for_all),
    Route("GET", _TOPIC, details.topic, of_topic(AclOperation.DESCRIBE)),
    Route("PATCH", _TOPIC, details.grow, of_topic(AclOperation.ALTER)),
    Route("DELETE", _TOPIC, delete_topic, of_topic(AclOperation.DELETE)),
    Route("GET", f"{_TOPIC}/config", details.config, of_topic(AclOperation.DESCRIBE_CONFIGS)),
    Route("PATCH", f"{_TOPIC}/config", details.change_config, of_topic(AclOperation.ALTER_CONFIGS)),
    Route("GET", f"{_TOPIC}/history", details.history, of_topic(AclOperation.DESCRIBE)),
    Route("GET", f"{_TOPIC}/consumers", details.consumers, of_topic(AclOperation.DESCRIBE)),
)

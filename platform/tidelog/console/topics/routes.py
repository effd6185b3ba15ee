"""Which requests are about the lake as a whole and about topics."""

from typing import Final

from tidelog.access.model import AclOperation
from tidelog.console.base.routing import ConsoleRoute, for_all, of_topic
from tidelog.console.topics import details
from tidelog.console.topics.listing import create_topic, delete_topic, topics
from tidelog.console.topics.overview import history, overview, requests, session

_TOPIC: Final = "/api/topics/{topic}"

TOPIC_ROUTES: Final = (
    ConsoleRoute("GET", "/api/session", session, for_all),
    ConsoleRoute("GET", "/api/overview", overview, for_all),
    ConsoleRoute("GET", "/api/overview/history", history, for_all),
    ConsoleRoute("GET", "/api/requests", requests, for_all),
    ConsoleRoute("GET", "/api/topics", topics, for_all),
    ConsoleRoute("POST", "/api/topics", create_topic, for_all),
    ConsoleRoute("GET", _TOPIC, details.topic, of_topic(AclOperation.DESCRIBE)),
    ConsoleRoute("PATCH", _TOPIC, details.grow, of_topic(AclOperation.ALTER)),
    ConsoleRoute("DELETE", _TOPIC, delete_topic, of_topic(AclOperation.DELETE)),
    ConsoleRoute("GET", f"{_TOPIC}/config", details.config, of_topic(AclOperation.DESCRIBE_CONFIGS)),
    ConsoleRoute("PATCH", f"{_TOPIC}/config", details.change_config, of_topic(AclOperation.ALTER_CONFIGS)),
    ConsoleRoute("GET", f"{_TOPIC}/history", details.history, of_topic(AclOperation.DESCRIBE)),
    ConsoleRoute("GET", f"{_TOPIC}/consumers", details.consumers, of_topic(AclOperation.DESCRIBE)),
)

"""All requests of the console: what answers each, and the right that it needs."""

from typing import Final

from tidelog.console import cuts, groups, maintenance, overview, services, topics, transactions
from tidelog.console.base.calls import ConsoleCall, for_all, needs
from tidelog.console.records import downloads, requests, tails
from tidelog.console.sql import queries
from tidelog.operations.rights import Right
from tidelog.server.routes import Route

_TOPIC: Final = "/api/topics/{topic}"
_RECORDS: Final = f"{_TOPIC}/records"
_GROUP: Final = "/api/groups/{group}"
_DESCRIBE: Final = needs(Right.DESCRIBE_CLUSTER)
_DESCRIBE_TOPIC: Final = needs(Right.DESCRIBE_TOPIC)
_READ: Final = needs(Right.READ_RECORDS)

ROUTES: Final[tuple[Route[ConsoleCall], ...]] = (
    Route("GET", "/api/session", overview.session, for_all),
    Route("GET", "/api/overview", overview.overview, for_all),
    Route("GET", "/api/overview/history", overview.history, for_all),
    Route("GET", "/api/requests", overview.requests, for_all),
    Route("GET", "/api/topics", topics.topics, for_all),
    Route("POST", "/api/topics", topics.create_topic, for_all),
    Route("GET", _TOPIC, topics.topic, _DESCRIBE_TOPIC),
    Route("PATCH", _TOPIC, topics.grow, needs(Right.ADD_PARTITIONS)),
    Route("DELETE", _TOPIC, topics.delete_topic, needs(Right.DELETE_TOPIC)),
    Route("GET", f"{_TOPIC}/config", topics.config, needs(Right.DESCRIBE_CONFIG)),
    Route("PATCH", f"{_TOPIC}/config", topics.change_config, needs(Right.ALTER_CONFIG)),
    Route("GET", f"{_TOPIC}/history", topics.history, _DESCRIBE_TOPIC),
    Route("GET", f"{_TOPIC}/consumers", topics.consumers, _DESCRIBE_TOPIC),
    Route("GET", _RECORDS, requests.records, _READ),
    Route("GET", f"{_RECORDS}/{{partition}}/{{offset}}", requests.record, _READ),
    Route("GET", f"{_RECORDS}/{{partition}}/{{offset}}/raw", requests.raw, _READ),
    Route("POST", _RECORDS, requests.produce, needs(Right.WRITE_RECORDS), requests.MOST_BODY),
    Route("GET", f"{_TOPIC}/tail", tails.tail, _READ),
    Route("GET", f"{_TOPIC}/download", downloads.download, _READ),
    Route("GET", "/api/groups", groups.groups, for_all),
    Route("GET", _GROUP, groups.group, needs(Right.DESCRIBE_GROUP)),
    Route("GET", f"{_GROUP}/history", groups.history, needs(Right.DESCRIBE_GROUP)),
    # A reset is a commit: it asks for the right to the topics, too.
    Route("POST", f"{_GROUP}/reset", groups.reset, needs(Right.COMMIT_OFFSETS), reads=True),
    Route("DELETE", _GROUP, groups.delete, needs(Right.DELETE_GROUP)),
    Route("GET", "/api/transactions", transactions.open_transactions, for_all),
    Route("POST", "/api/transactions/abort", transactions.abort, needs(Right.ABORT_TRANSACTION)),
    Route("GET", "/api/producers", transactions.producers, for_all),
    Route("GET", "/api/maintenance", maintenance.maintenance, _DESCRIBE),
    Route("GET", "/api/maintenance/run", maintenance.newest_run, _DESCRIBE),
    Route("POST", "/api/maintenance/run", maintenance.run_now, needs(Right.RUN_MAINTENANCE)),
    Route("GET", "/api/check", maintenance.check, _DESCRIBE),
    Route("POST", "/api/check/run", maintenance.run_check, _DESCRIBE, reads=True),
    Route("GET", "/api/doctor", maintenance.doctor, _DESCRIBE),
    Route("GET", "/api/brokers", services.brokers, _DESCRIBE),
    Route("GET", "/api/schemas", services.schemas, for_all),
    Route("GET", "/api/schemas/{subject}", services.subject, for_all),
    Route("GET", "/api/connectors", services.connectors, needs(Right.DESCRIBE_CONNECTOR)),
    Route("GET", "/api/mirrors", services.mirrors, _DESCRIBE),
    Route("GET", "/api/cuts", cuts.cuts, _DESCRIBE),
    Route("GET", "/api/cuts/{cut}", cuts.cut, _DESCRIBE),
    Route("POST", "/api/sql", queries.start, for_all, reads=True),
    Route("GET", "/api/sql/{id}", queries.look, for_all),
    Route("DELETE", "/api/sql/{id}", queries.cancel, for_all, reads=True),
)

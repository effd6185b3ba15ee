"""The faces of a lake that carry operations out, each asked in its own words; what they answer in common ones."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from support.broker_requests import Requests
from support.cli_calls import cli
from support.console import PageClient, running_console

from tidelog.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConsumerGroupTopicPartitions,
    KafkaException,
    NewPartitions,
    NewTopic,
)
from tidelog.broker.wire.apis import ApiKey
from tidelog.clients.values.partitions import TopicPartition
from tidelog.log.lake import Lake


@dataclass(frozen=True)
class Answer:
    """What an operation ended with: Kafka's code of an error, 0 for none, and its sentence; None where none is said."""

    code: int | None = 0
    sentence: str | None = None


DONE = Answer()


class Face:
    """A face; its methods are the operations that it has."""

    def __init__(self, address: str) -> None:
        self._address = address

    @classmethod
    def has(cls, operation: str) -> bool:
        """Whether an operation can be asked for here."""
        return getattr(cls, operation, None) is not None


class Console(Face):
    """The page's HTTP interface: it has a sentence, and a status in place of a code."""

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> Answer:
        return self._ask("POST", "/api/topics", {"name": name, "partitions": partitions, "config": dict(config)})

    def add_partitions(self, name: str, partitions: int) -> Answer:
        return self._ask("PATCH", f"/api/topics/{name}", {"partitions": partitions})

    def set_key(self, name: str, key: str, value: str) -> Answer:
        return self._ask("PATCH", f"/api/topics/{name}/config", {"set": {key: value}})

    def delete_topic(self, name: str) -> Answer:
        return self._ask("DELETE", f"/api/topics/{name}", {"confirm": name})

    def describe_topic(self, name: str) -> Answer:
        return self._ask("GET", f"/api/topics/{name}")

    def describe_group(self, group: str) -> Answer:
        return self._ask("GET", f"/api/groups/{group}")

    def delete_group(self, group: str) -> Answer:
        return self._ask("DELETE", f"/api/groups/{group}", {"confirm": group})

    def set_offset(self, group: str, topic: str, partition: int, offset: int) -> Answer:
        body = {"topic": topic, "partitions": [partition], "to": "offset", "value": offset, "dry_run": False}
        return self._ask("POST", f"/api/groups/{group}/reset", body)

    def abort_transaction(self, transactional_id: str) -> Answer:
        return self._ask("POST", "/api/transactions/abort", {"transactional_id": transactional_id})

    def _ask(self, method: str, path: str, body: Any = None) -> Answer:
        with self._page() as page:
            answered = page.request(method, path, json=body)
        return DONE if answered.status_code == 200 else Answer(None, answered.json()["message"])

    @contextmanager
    def _page(self) -> Iterator[PageClient]:
        with running_console(self._address) as running, running.client() as page:
            yield page


class Command(Face):
    """The command line, which is asked for JSON."""

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> Answer:
        keys = [word for pair in config.items() for word in ("--config", "=".join(pair))]
        return self._run("topic", "create", name, "--partitions", str(partitions), *keys)

    def add_partitions(self, name: str, partitions: int) -> Answer:
        return self._run("topic", "alter", name, "--partitions", str(partitions))

    def set_key(self, name: str, key: str, value: str) -> Answer:
        return self._run("topic", "alter", name, "--config", f"{key}={value}")

    def delete_topic(self, name: str) -> Answer:
        return self._run("topic", "delete", name, "--yes")

    def describe_topic(self, name: str) -> Answer:
        return self._run("topic", "describe", name)

    def delete_records(self, name: str, partition: int, offset: int) -> Answer:
        return self._run("topic", "delete-records", name, "--offset", f"{partition}:{offset}")

    def describe_group(self, group: str) -> Answer:
        return self._run("group", "describe", group)

    def delete_group(self, group: str) -> Answer:
        return self._run("group", "delete", group)

    def delete_offset(self, group: str, topic: str, partition: int) -> Answer:
        return self._run("group", "delete-offsets", group, "--topic", f"{topic}:{partition}")

    def set_offset(self, group: str, topic: str, partition: int, offset: int) -> Answer:
        where = ("--topic", f"{topic}:{partition}", "--to-offset", str(offset))
        return self._run("group", "reset-offsets", group, *where, "--execute")

    def describe_transaction(self, transactional_id: str) -> Answer:
        return self._run("transaction", "describe", transactional_id)

    def abort_transaction(self, transactional_id: str) -> Answer:
        return self._run("transaction", "abort", transactional_id)

    def _run(self, *words: str) -> Answer:
        ended = cli(*words, "--lake", self._address, "--format", "json")
        if ended.exit_code == 0:
            return DONE
        if not ended.stderr:  # what was refused is a row of the answer
            (row,) = orjson.loads(ended.stdout)["partitions"]
            return Answer(None, row["error"])
        told = orjson.loads(ended.stderr.splitlines()[-1])["error"]
        return Answer(told["kafka_code"], told["message"])


class Client(Face):
    """`AdminClient`, which raises."""

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> Answer:
        with self._open() as client:
            return _of(client.create_topics([NewTopic(name, partitions, config=dict(config))]))

    def add_partitions(self, name: str, partitions: int) -> Answer:
        with self._open() as client:
            return _of(client.create_partitions([NewPartitions(name, partitions)]))

    def set_key(self, name: str, key: str, value: str) -> Answer:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        with self._open() as client:
            return _of(client.incremental_alter_configs([ConfigResource("topic", name, incremental_configs=[entry])]))

    def delete_topic(self, name: str) -> Answer:
        with self._open() as client:
            return _of(client.delete_topics([name]))

    def delete_records(self, name: str, partition: int, offset: int) -> Answer:
        with self._open() as client:
            return _of(client.delete_records([TopicPartition(name, partition, offset)]))

    def describe_group(self, group: str) -> Answer:
        with self._open() as client:
            return _of(client.describe_consumer_groups([group]))

    def delete_group(self, group: str) -> Answer:
        with self._open() as client:
            return _of(client.delete_consumer_groups([group]))

    def set_offset(self, group: str, topic: str, partition: int, offset: int) -> Answer:
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition, offset)])
        with self._open() as client:
            return _of(client.alter_consumer_group_offsets([wanted]))

    def delete_offset(self, group: str, topic: str, partition: int) -> Answer:
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition)])
        with self._open() as client:
            return _of(client.delete_consumer_group_offsets([wanted]))

    def _open(self) -> AdminClient:
        return AdminClient({"lake": self._address})


def _of(futures: Mapping[Any, Any]) -> Answer:
    """What a request about one thing ended with."""
    (future,) = futures.values()
    try:
        result = future.result()
    except KafkaException as e:
        return Answer(e.args[0].code(), e.args[0].str())
    refused = [p.error for p in getattr(result, "topic_partitions", None) or () if p.error is not None]
    return Answer(refused[0].code(), refused[0].str()) if refused else DONE


class Broker(Face):
    """A broker's handlers; not every answer of Kafka's protocol has room for a sentence."""

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> Answer:
        keys = [{"name": key, "value": value} for key, value in config.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": -1, "configs": keys}
        return self._ask(ApiKey.CREATE_TOPICS, 7, "topics", {"topics": [topic], "timeout": 0})

    def add_partitions(self, name: str, partitions: int) -> Answer:
        topic = {"name": name, "count": partitions, "assignments": None}
        body = {"topics": [topic], "timeout": 0, "validate_only": False}
        return self._ask(ApiKey.CREATE_PARTITIONS, 3, "results", body)

    def set_key(self, name: str, key: str, value: str) -> Answer:
        change = {"name": key, "config_operation": 0, "value": value}
        resource = {"resource_type": 2, "resource_name": name, "configs": [change]}
        body = {"resources": [resource], "validate_only": False}
        return self._ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, "responses", body)

    def delete_topic(self, name: str) -> Answer:
        return self._ask(ApiKey.DELETE_TOPICS, 5, "responses", {"topic_names": [name], "timeout": 0})

    def describe_topic(self, name: str) -> Answer:
        return self._ask(ApiKey.METADATA, 9, "topics", {"topics": [{"name": name}], "allow_auto_topic_creation": False})

    def delete_records(self, name: str, partition: int, offset: int) -> Answer:
        topic = {"name": name, "partitions": [{"partition_index": partition, "offset": offset}]}
        return self._ask(ApiKey.DELETE_RECORDS, 2, "topics", {"topics": [topic], "timeout": 0})

    def describe_group(self, group: str) -> Answer:
        return self._ask(ApiKey.DESCRIBE_GROUPS, 6, "groups", {"groups": [group]})

    def delete_group(self, group: str) -> Answer:
        return self._ask(ApiKey.DELETE_GROUPS, 2, "results", {"groups_names": [group]})

    def set_offset(self, group: str, topic: str, partition: int, offset: int) -> Answer:
        place = {"partition_index": partition, "committed_offset": offset, "committed_leader_epoch": -1}
        body = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
        return self._ask(ApiKey.OFFSET_COMMIT, 8, "topics", body | {"topics": [{"name": topic, "partitions": [place]}]})

    def delete_offset(self, group: str, topic: str, partition: int) -> Answer:
        topics = [{"name": topic, "partitions": [{"partition_index": partition}]}]
        return self._ask(ApiKey.OFFSET_DELETE, 0, "topics", {"group_id": group, "topics": topics})

    def describe_transaction(self, transactional_id: str) -> Answer:
        body = {"transactional_ids": [transactional_id]}
        return self._ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, "transaction_states", body)

    def _ask(self, key: ApiKey, version: int, part: str, body: Mapping[str, Any]) -> Answer:
        with Lake(self._address, create=False) as lake, Requests(lake) as requests:
            told = requests.reply(key, version, body)
        if not told.get("error_code"):
            (told,) = told[part]
        if "error_code" not in told:
            (told,) = told["partitions"]
        return Answer(int(told["error_code"]), told.get("error_message"))


FACES: tuple[type[Face], ...] = (Console, Command, Client, Broker)

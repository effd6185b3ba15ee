"""A sink's offsets: those of its consumer group."""

from collections.abc import Collection, Mapping

from tidelog.admin.client import AdminClient
from tidelog.admin.group_types import ConsumerGroupTopicPartitions
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import TopicPartition
from tidelog.connect.data.records import Partition
from tidelog.log.lake import Lake


def committed_offsets(lake: Lake, group: str) -> dict[Partition, int]:
    """{partition: offset} of a group, {} for one that is not there."""
    try:
        asked = [ConsumerGroupTopicPartitions(group)]
        found = AdminClient({"lake": lake}).list_consumer_group_offsets(asked)[group].result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return {}
        raise
    return {(one.topic, one.partition): one.offset for one in found.topic_partitions or () if one.offset >= 0}


def set_offsets(lake: Lake, group: str, wanted: Mapping[Partition, int], gone: Collection[Partition] = ()) -> None:
    """Set some offsets of a group without members, and take out others. Raises `KafkaException`."""
    admin = AdminClient({"lake": lake})
    if wanted:
        kept = [TopicPartition(*one, offset) for one, offset in wanted.items()]
        admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, kept)])[group].result()
    if gone:
        left = [TopicPartition(*one) for one in gone]
        admin.delete_consumer_group_offsets([ConsumerGroupTopicPartitions(group, left)])[group].result()

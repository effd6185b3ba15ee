"""What an administrator asks for, by name. Arguments: address, operation, its arguments, -- and the next one."""

import sys

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    ElectionType,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)


def outcomes(futures):
    for what, future in futures.items():
        try:
            yield what, future.result()
        except KafkaException as e:
            print(f"{what}: {e.args[0].name()}")


def create_topics(admin, *topics):
    for topic, _ in outcomes(
        admin.create_topics([NewTopic(t, num_partitions=2, replication_factor=1) for t in topics])
    ):
        print(f"created {topic}")


def delete_topics(admin, *topics):
    for topic, _ in outcomes(admin.delete_topics(list(topics), operation_timeout=30)):
        print(f"deleted {topic}")


def create_partitions(admin, topic, count):
    for name, _ in outcomes(admin.create_partitions([NewPartitions(topic, int(count))], validate_only=False)):
        print(f"{name} has {count}")


def describe_configs(admin, kind, name, *keys):
    for resource, entries in outcomes(admin.describe_configs([ConfigResource(kind, name)])):
        for key in keys:
            entry = entries[key]
            print(
                resource, entry.name, entry.value, ConfigSource(entry.source).name, entry.is_default, entry.is_read_only
            )


def incremental_alter_configs(admin, topic, *changes):
    entries = []
    for name, operation, value in (change.split(":") for change in changes):
        entries.append(ConfigEntry(name, value or None, incremental_operation=AlterConfigOpType[operation]))
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for changed, _ in outcomes(admin.incremental_alter_configs([resource])):
        print(f"changed {changed}")


def alter_configs(admin, topic, name, value):
    resource = ConfigResource("TOPIC", topic)
    (found,) = admin.describe_configs([resource]).values()
    resource.set_config(name, value)
    for key, entry in found.result().items():
        if not entry.is_default:
            resource.set_config(key, entry.value, overwrite=False)
    for changed, _ in outcomes(admin.alter_configs([resource])):
        print(f"changed {changed}, {len(resource)} keys")


def listed(admin):
    metadata = admin.list_topics(timeout=10)
    print(len(metadata.brokers), metadata.controller_id in metadata.brokers, metadata.orig_broker_name != "")
    for topic in metadata.topics.values():
        print(topic, [(p.id, p.leader, p.replicas, p.isrs, p.error) for p in topic.partitions.values()], topic.error)
    for group in admin.list_groups(timeout=10):
        print(group, group.state, len(group.members), group.error)


def list_consumer_groups(admin, states):
    wanted = {ConsumerGroupState[name] for name in states.split(",")}
    found = admin.list_consumer_groups(request_timeout=10, states=wanted, types={ConsumerGroupType.CLASSIC}).result()
    print([(one.group_id, one.is_simple_consumer_group, one.state.name, one.type.name) for one in found.valid])
    print(found.errors)


def describe_consumer_groups(admin, *groups):
    futures = admin.describe_consumer_groups(list(groups), include_authorized_operations=True, request_timeout=10)
    for _, group in outcomes(futures):
        operations = " ".join(operation.name for operation in group.authorized_operations)
        print(group.group_id, group.state.name, group.type.name, group.members, operations)


def describe_topics(admin, *topics):
    collection = TopicCollection(topic_names=list(topics))
    futures = admin.describe_topics(collection, request_timeout=10, include_authorized_operations=True)
    for _, topic in outcomes(futures):
        partitions = [(one.id, one.leader.id, len(one.replicas), len(one.isr)) for one in topic.partitions]
        print(topic.name, topic.is_internal, partitions, len(topic.authorized_operations))


def describe_cluster(admin):
    cluster = admin.describe_cluster(request_timeout=10, include_authorized_operations=True).result()
    print(cluster.cluster_id != "", [node.id for node in cluster.nodes], cluster.controller.id)


def group_offsets(admin, group, topic):
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0), TopicPartition(topic, 1)])]
    for name, found in outcomes(admin.list_consumer_group_offsets(asked)):
        print(name, [(one.partition, one.offset, one.error) for one in found.topic_partitions])


def alter_offsets(admin, group, topic, partition, offset):
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, int(partition), int(offset))])]
    for name, found in outcomes(admin.alter_consumer_group_offsets(asked)):
        print(name, [(one.partition, one.offset, one.error) for one in found.topic_partitions])


def list_offsets(admin, topic):
    specs = [OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.max_timestamp(), OffsetSpec.for_timestamp(1)]
    for spec in specs:
        asked = {TopicPartition(topic, 0): spec}
        futures = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=30)
        for partition, found in outcomes(futures):
            print(partition.topic, partition.partition, found.offset, found.timestamp > 0)


def delete_records(admin, topic, partition, offset):
    for one, deleted in outcomes(admin.delete_records([TopicPartition(topic, int(partition), int(offset))])):
        print(one.topic, one.partition, deleted.low_watermark)


def delete_groups(admin, *groups):
    for group, _ in outcomes(admin.delete_consumer_groups(list(groups), request_timeout=10)):
        print(f"deleted {group}")


def access(admin, topic):
    rule = (ResourceType["TOPIC"], topic, ResourcePatternType["LITERAL"], "User:u", "*")
    allowed = (AclOperation["READ"], AclPermissionType["ALLOW"])
    created = admin.create_acls([AclBinding(*rule, *allowed)], request_timeout=10)
    described = {"described": admin.describe_acls(AclBindingFilter(*rule, *allowed), request_timeout=10)}
    deleted = admin.delete_acls([AclBindingFilter(*rule, *allowed)], request_timeout=10)
    for futures in (created, described, deleted):
        print(len(list(outcomes(dict(enumerate(futures.values()))))))


def users(admin, user):
    change = ScramCredentialInfo(ScramMechanism["SCRAM_SHA_256"], 8192)
    upsertion = UserScramCredentialUpsertion(user, change, b"secret", None)
    futures = admin.alter_user_scram_credentials([upsertion])
    futures |= {"all": admin.describe_user_scram_credentials()}
    print(len(list(outcomes(futures))))
    deletion = UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256)
    print(len(list(outcomes(admin.alter_user_scram_credentials([deletion])))))
    print(len(list(outcomes(admin.describe_user_scram_credentials([user])))))


def elect_leaders(admin, topic):
    futures = {"elected": admin.elect_leaders(ElectionType["PREFERRED"], [TopicPartition(topic, 0)])}
    print(len(list(outcomes(futures))))


if __name__ == "__main__":
    client = AdminClient({"bootstrap.servers": sys.argv[1]})
    for asked in " ".join(sys.argv[2:]).split(" -- "):
        operation, *arguments = asked.split()
        globals()[operation](client, *arguments)

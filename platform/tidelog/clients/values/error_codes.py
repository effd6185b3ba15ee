"""The codes of `KafkaError`, by librdkafka's names.

Negative ones (but -1) are made by the client itself, the others are codes of Kafka's protocol. Source: librdkafka 2.x
`rd_kafka_resp_err_t`, and Kafka 4's `Errors` for the few that librdkafka has no name for.
"""

from collections.abc import Mapping
from typing import Final


class ErrorCodes:
    """Every code, as a constant: `KafkaError._TIMED_OUT`, `KafkaError.UNKNOWN_TOPIC_OR_PART`."""

    _BAD_MSG: Final = -199
    _BAD_COMPRESSION: Final = -198
    _DESTROY: Final = -197
    _FAIL: Final = -196
    _TRANSPORT: Final = -195
    _CRIT_SYS_RESOURCE: Final = -194
    _RESOLVE: Final = -193
    _MSG_TIMED_OUT: Final = -192
    _PARTITION_EOF: Final = -191
    _UNKNOWN_PARTITION: Final = -190
    _FS: Final = -189
    _UNKNOWN_TOPIC: Final = -188
    _ALL_BROKERS_DOWN: Final = -187
    _INVALID_ARG: Final = -186
    _TIMED_OUT: Final = -185
    _QUEUE_FULL: Final = -184
    _ISR_INSUFF: Final = -183
    _NODE_UPDATE: Final = -182
    _SSL: Final = -181
    _WAIT_COORD: Final = -180
    _UNKNOWN_GROUP: Final = -179
    _IN_PROGRESS: Final = -178
    _PREV_IN_PROGRESS: Final = -177
    _EXISTING_SUBSCRIPTION: Final = -176
    _ASSIGN_PARTITIONS: Final = -175
    _REVOKE_PARTITIONS: Final = -174
    _CONFLICT: Final = -173
    _STATE: Final = -172
    _UNKNOWN_PROTOCOL: Final = -171
    _NOT_IMPLEMENTED: Final = -170
    _AUTHENTICATION: Final = -169
    _NO_OFFSET: Final = -168
    _OUTDATED: Final = -167
    _TIMED_OUT_QUEUE: Final = -166
    _UNSUPPORTED_FEATURE: Final = -165
    _WAIT_CACHE: Final = -164
    _INTR: Final = -163
    _KEY_SERIALIZATION: Final = -162
    _VALUE_SERIALIZATION: Final = -161
    _KEY_DESERIALIZATION: Final = -160
    _VALUE_DESERIALIZATION: Final = -159
    _PARTIAL: Final = -158
    _READ_ONLY: Final = -157
    _NOENT: Final = -156
    _UNDERFLOW: Final = -155
    _INVALID_TYPE: Final = -154
    _RETRY: Final = -153
    _PURGE_QUEUE: Final = -152
    _PURGE_INFLIGHT: Final = -151
    _FATAL: Final = -150
    _INCONSISTENT: Final = -149
    _GAPLESS_GUARANTEE: Final = -148
    _MAX_POLL_EXCEEDED: Final = -147
    _UNKNOWN_BROKER: Final = -146
    _NOT_CONFIGURED: Final = -145
    _FENCED: Final = -144
    _APPLICATION: Final = -143
    _ASSIGNMENT_LOST: Final = -142
    _NOOP: Final = -141
    _AUTO_OFFSET_RESET: Final = -140
    _LOG_TRUNCATION: Final = -139
    _INVALID_DIFFERENT_RECORD: Final = -138
    _DESTROY_BROKER: Final = -137
    UNKNOWN: Final = -1
    NO_ERROR: Final = 0
    OFFSET_OUT_OF_RANGE: Final = 1
    INVALID_MSG: Final = 2
    UNKNOWN_TOPIC_OR_PART: Final = 3
    INVALID_MSG_SIZE: Final = 4
    LEADER_NOT_AVAILABLE: Final = 5
    NOT_LEADER_FOR_PARTITION: Final = 6
    REQUEST_TIMED_OUT: Final = 7
    BROKER_NOT_AVAILABLE: Final = 8
    REPLICA_NOT_AVAILABLE: Final = 9
    MSG_SIZE_TOO_LARGE: Final = 10
    STALE_CTRL_EPOCH: Final = 11
    OFFSET_METADATA_TOO_LARGE: Final = 12
    NETWORK_EXCEPTION: Final = 13
    COORDINATOR_LOAD_IN_PROGRESS: Final = 14
    COORDINATOR_NOT_AVAILABLE: Final = 15
    NOT_COORDINATOR: Final = 16
    TOPIC_EXCEPTION: Final = 17
    RECORD_LIST_TOO_LARGE: Final = 18
    NOT_ENOUGH_REPLICAS: Final = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = 20
    INVALID_REQUIRED_ACKS: Final = 21
    ILLEGAL_GENERATION: Final = 22
    INCONSISTENT_GROUP_PROTOCOL: Final = 23
    INVALID_GROUP_ID: Final = 24
    UNKNOWN_MEMBER_ID: Final = 25
    INVALID_SESSION_TIMEOUT: Final = 26
    REBALANCE_IN_PROGRESS: Final = 27
    INVALID_COMMIT_OFFSET_SIZE: Final = 28
    TOPIC_AUTHORIZATION_FAILED: Final = 29
    GROUP_AUTHORIZATION_FAILED: Final = 30
    CLUSTER_AUTHORIZATION_FAILED: Final = 31
    INVALID_TIMESTAMP: Final = 32
    UNSUPPORTED_SASL_MECHANISM: Final = 33
    ILLEGAL_SASL_STATE: Final = 34
    UNSUPPORTED_VERSION: Final = 35
    TOPIC_ALREADY_EXISTS: Final = 36
    INVALID_PARTITIONS: Final = 37
    INVALID_REPLICATION_FACTOR: Final = 38
    INVALID_REPLICA_ASSIGNMENT: Final = 39
    INVALID_CONFIG: Final = 40
    NOT_CONTROLLER: Final = 41
    INVALID_REQUEST: Final = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT: Final = 43
    POLICY_VIOLATION: Final = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER: Final = 45
    DUPLICATE_SEQUENCE_NUMBER: Final = 46
    INVALID_PRODUCER_EPOCH: Final = 47
    INVALID_TXN_STATE: Final = 48
    INVALID_PRODUCER_ID_MAPPING: Final = 49
    INVALID_TRANSACTION_TIMEOUT: Final = 50
    CONCURRENT_TRANSACTIONS: Final = 51
    TRANSACTION_COORDINATOR_FENCED: Final = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
    SECURITY_DISABLED: Final = 54
    OPERATION_NOT_ATTEMPTED: Final = 55
    KAFKA_STORAGE_ERROR: Final = 56
    LOG_DIR_NOT_FOUND: Final = 57
    SASL_AUTHENTICATION_FAILED: Final = 58
    UNKNOWN_PRODUCER_ID: Final = 59
    REASSIGNMENT_IN_PROGRESS: Final = 60
    DELEGATION_TOKEN_AUTH_DISABLED: Final = 61
    DELEGATION_TOKEN_NOT_FOUND: Final = 62
    DELEGATION_TOKEN_OWNER_MISMATCH: Final = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: Final = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED: Final = 65
    DELEGATION_TOKEN_EXPIRED: Final = 66
    INVALID_PRINCIPAL_TYPE: Final = 67
    NON_EMPTY_GROUP: Final = 68
    GROUP_ID_NOT_FOUND: Final = 69
    FETCH_SESSION_ID_NOT_FOUND: Final = 70
    INVALID_FETCH_SESSION_EPOCH: Final = 71
    LISTENER_NOT_FOUND: Final = 72
    TOPIC_DELETION_DISABLED: Final = 73
    FENCED_LEADER_EPOCH: Final = 74
    UNKNOWN_LEADER_EPOCH: Final = 75
    UNSUPPORTED_COMPRESSION_TYPE: Final = 76
    STALE_BROKER_EPOCH: Final = 77
    OFFSET_NOT_AVAILABLE: Final = 78
    MEMBER_ID_REQUIRED: Final = 79
    PREFERRED_LEADER_NOT_AVAILABLE: Final = 80
    GROUP_MAX_SIZE_REACHED: Final = 81
    FENCED_INSTANCE_ID: Final = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE: Final = 83
    ELECTION_NOT_NEEDED: Final = 84
    NO_REASSIGNMENT_IN_PROGRESS: Final = 85
    GROUP_SUBSCRIBED_TO_TOPIC: Final = 86
    INVALID_RECORD: Final = 87
    UNSTABLE_OFFSET_COMMIT: Final = 88
    THROTTLING_QUOTA_EXCEEDED: Final = 89
    PRODUCER_FENCED: Final = 90
    RESOURCE_NOT_FOUND: Final = 91
    DUPLICATE_RESOURCE: Final = 92
    UNACCEPTABLE_CREDENTIAL: Final = 93
    INCONSISTENT_VOTER_SET: Final = 94
    INVALID_UPDATE_VERSION: Final = 95
    FEATURE_UPDATE_FAILED: Final = 96
    PRINCIPAL_DESERIALIZATION_FAILURE: Final = 97
    SNAPSHOT_NOT_FOUND: Final = 98
    POSITION_OUT_OF_RANGE: Final = 99
    UNKNOWN_TOPIC_ID: Final = 100
    DUPLICATE_BROKER_REGISTRATION: Final = 101
    BROKER_ID_NOT_REGISTERED: Final = 102
    INCONSISTENT_TOPIC_ID: Final = 103
    INCONSISTENT_CLUSTER_ID: Final = 104
    TRANSACTIONAL_ID_NOT_FOUND: Final = 105
    FETCH_SESSION_TOPIC_ID_ERROR: Final = 106
    INELIGIBLE_REPLICA: Final = 107
    NEW_LEADER_ELECTED: Final = 108
    OFFSET_MOVED_TO_TIERED_STORAGE: Final = 109
    FENCED_MEMBER_EPOCH: Final = 110
    UNRELEASED_INSTANCE_ID: Final = 111
    UNSUPPORTED_ASSIGNOR: Final = 112
    STALE_MEMBER_EPOCH: Final = 113
    MISMATCHED_ENDPOINT_TYPE: Final = 114
    UNSUPPORTED_ENDPOINT_TYPE: Final = 115
    UNKNOWN_CONTROLLER_ID: Final = 116
    UNKNOWN_SUBSCRIPTION_ID: Final = 117
    TELEMETRY_TOO_LARGE: Final = 118
    INVALID_REGISTRATION: Final = 119
    TRANSACTION_ABORTABLE: Final = 120
    INVALID_RECORD_STATE: Final = 121
    SHARE_SESSION_NOT_FOUND: Final = 122
    INVALID_SHARE_SESSION_EPOCH: Final = 123
    FENCED_STATE_EPOCH: Final = 124
    INVALID_VOTER_KEY: Final = 125
    DUPLICATE_VOTER: Final = 126
    VOTER_NOT_FOUND: Final = 127
    INVALID_REGULAR_EXPRESSION: Final = 128
    REBOOTSTRAP_REQUIRED: Final = 129
    STREAMS_INVALID_TOPOLOGY: Final = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH: Final = 131
    STREAMS_TOPOLOGY_FENCED: Final = 132
    SHARE_SESSION_LIMIT_REACHED: Final = 133


NAMES: Final[Mapping[int, str]] = {
    code: name for name, code in vars(ErrorCodes).items() if isinstance(code, int) and name.isupper()
}

# Words that librdkafka's names shorten.
_WORDS: Final = {
    "ARG": "argument or configuration",
    "COORD": "coordinator",
    "CRIT": "critical",
    "CTRL": "controller",
    "FS": "file or filesystem error",
    "INTR": "operation interrupted",
    "MSG": "message",
    "NOENT": "no such entry",
    "NOOP": "no operation performed",
    "PART": "partition",
    "SYS": "system",
    "TXN": "transaction",
}


def describe(code: int) -> str:
    """Return what a code means in a few words: `Local: Timed out`, `Broker: Unknown topic or partition`."""
    if code == ErrorCodes.NO_ERROR:
        return "Success"
    name = NAMES.get(code)
    if name is None:
        return f"Err-{code}?"
    words = " ".join(_WORDS.get(word, word.lower()) for word in name.strip("_").split("_"))
    side = "Local" if name.startswith("_") else "Broker"
    return f"{side}: {words[0].upper()}{words[1:]}"

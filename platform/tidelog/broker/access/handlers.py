"""What this part of a broker answers: ACLs, users, quotas; and delegation tokens, which there are none of."""

from typing import Final

from tidelog.broker.access.acls import AclHandlers
from tidelog.broker.access.client_quotas import QuotaHandlers
from tidelog.broker.access.scram_users import ScramUserHandlers
from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.base.kafka_codes import KafkaCode

# As Kafka's brokers answer that have no secret for tokens.
_DISABLED: Final = {"error_code": KafkaCode.DELEGATION_TOKEN_AUTH_DISABLED}
_NO_TIME: Final = 0


def handlers(context: Context) -> Handlers:
    """The administration of access."""
    return {
        **AclHandlers(context).handlers(),
        **ScramUserHandlers(context).handlers(),
        **QuotaHandlers(context).handlers(),
        ApiKey.CREATE_DELEGATION_TOKEN: create_token,
        ApiKey.RENEW_DELEGATION_TOKEN: change_token,
        ApiKey.EXPIRE_DELEGATION_TOKEN: change_token,
        ApiKey.DESCRIBE_DELEGATION_TOKEN: describe_tokens,
    }


async def create_token(call: Call) -> Reply:  # noqa: ARG001 - all are refused
    """CreateDelegationToken."""
    nobody = dict.fromkeys(
        (
            "principal_type",
            "principal_name",
            "token_requester_principal_type",
            "token_requester_principal_name",
            "token_id",
        ),
        "",
    )
    never = dict.fromkeys(("issue_timestamp", "expiry_timestamp", "max_timestamp"), _NO_TIME)
    return {**_DISABLED, **nobody, **never, "hmac": b""}


async def change_token(call: Call) -> Reply:  # noqa: ARG001 - all are refused
    """RenewDelegationToken and ExpireDelegationToken."""
    return {**_DISABLED, "expiry_timestamp": _NO_TIME}


async def describe_tokens(call: Call) -> Reply:  # noqa: ARG001 - all are refused
    """DescribeDelegationToken."""
    return {**_DISABLED, "tokens": ()}

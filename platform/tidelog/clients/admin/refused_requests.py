"""What an AdminClient is asked for and a lake has not: access rules, users, leaders. Each answer says why."""

# ruff: noqa: ARG002 - confluent-kafka's parameters

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final, NoReturn

from tidelog.clients.admin.access import AclBinding, AclBindingFilter, UserScramCredentialAlteration
from tidelog.clients.admin.checks import check_list
from tidelog.clients.admin.enums import ElectionType
from tidelog.clients.values.errors import KafkaError, kafka_exception
from tidelog.clients.values.partitions import TopicPartition

_NO_RULES: Final = (
    "a lake has no users and no access rules of its own. Its storage decides which programs may read and write it:"
    " set that there"
)
_NO_LEADERS: Final = (
    "there are no replicas to elect leaders from: every client reads and writes the lake's storage itself"
)


class RefusedRequests:
    """Requests that are answered by futures which raise KafkaException, as a broker refuses them.

    Rules: SECURITY_DISABLED, a broker's answer that has no authorizer. Users and leaders: `_UNSUPPORTED_FEATURE`.
    """

    def create_acls(self, acls: Sequence[AclBinding], *, request_timeout: float | None = None) -> dict[Any, Any]:
        """Refused for each rule: {rule: future}."""
        rules = check_list("AclBinding objects", acls, AclBinding)
        return {rule: _refused(KafkaError.SECURITY_DISABLED, "create_acls", _NO_RULES) for rule in rules}

    def describe_acls(
        self, acl_binding_filter: AclBindingFilter, *, request_timeout: float | None = None
    ) -> Future[Any]:
        """Refused."""
        return _refused(KafkaError.SECURITY_DISABLED, "describe_acls", _NO_RULES)

    def delete_acls(
        self, acl_binding_filters: Sequence[AclBindingFilter], *, request_timeout: float | None = None
    ) -> dict[Any, Any]:
        """Refused for each filter: {filter: future}."""
        filters = check_list("AclBindingFilter objects", acl_binding_filters, AclBindingFilter)
        return {one: _refused(KafkaError.SECURITY_DISABLED, "delete_acls", _NO_RULES) for one in filters}

    def describe_user_scram_credentials(
        self, users: Sequence[str] | None = None, *, request_timeout: float | None = None
    ) -> Future[Any] | dict[str, Future[Any]]:
        """Refused for all users (None), or for each: {user: future}."""
        call = "describe_user_scram_credentials"
        if users is None:
            return _refused(KafkaError._UNSUPPORTED_FEATURE, call, _NO_RULES)
        names = check_list("user names", users, str)
        return {user: _refused(KafkaError._UNSUPPORTED_FEATURE, call, _NO_RULES) for user in names}

    def alter_user_scram_credentials(
        self, alterations: Sequence[UserScramCredentialAlteration], *, request_timeout: float | None = None
    ) -> dict[str, Future[Any]]:
        """Refused for each user: {user: future}."""
        call = "alter_user_scram_credentials"
        wanted = check_list("UserScramCredentialAlteration objects", alterations, UserScramCredentialAlteration)
        return {one.user: _refused(KafkaError._UNSUPPORTED_FEATURE, call, _NO_RULES) for one in wanted}

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Sequence[TopicPartition] | None = None,
        *,
        request_timeout: float | None = None,
        operation_timeout: float | None = None,
    ) -> Future[Any]:
        """Refused: partitions have no leaders."""
        return _refused(KafkaError._UNSUPPORTED_FEATURE, "elect_leaders", _NO_LEADERS)

    def set_sasl_credentials(self, username: str, password: str) -> NoReturn:
        """Refused at once: a client signs in to the storage. Raises KafkaException."""
        raise kafka_exception(KafkaError._UNSUPPORTED_FEATURE, f"set_sasl_credentials is refused: {_NO_RULES}.")


def _refused(code: int, call: str, why: str) -> Future[Any]:
    refused: Future[Any] = Future()
    refused.set_exception(kafka_exception(code, f"{call} is refused: {why}."))
    return refused

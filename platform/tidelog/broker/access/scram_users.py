"""DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554): what kafka-configs.sh does with users.

No password comes this way: the client sends what it has salted and hashed, and what is kept is derived from that.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidelog.access.credentials import ScramCredential, ScramMechanism, of_salted_password
from tidelog.access.rules import require_user
from tidelog.access.state import DuplicateCredentialError, UnacceptableCredentialError, UnknownCredentialError
from tidelog.broker.access.authorization import result
from tidelog.broker.base.access import requester
from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.messages import Answer
from tidelog.log.base.errors import InvalidConfigError, TidelogError
from tidelog.log.base.kafka_codes import KafkaCode
from tidelog.operations.access import UserDescription, alter_user, describe_users

# The protocol's numbers of mechanisms.
_MECHANISMS: Final = {1: ScramMechanism.SHA_256, 2: ScramMechanism.SHA_512}
_CODES: Final = {mechanism: code for code, mechanism in _MECHANISMS.items()}


class UnsupportedMechanismError(TidelogError, kafka_code=KafkaCode.UNSUPPORTED_SASL_MECHANISM):
    """A SASL mechanism that credentials are not kept for."""


class ScramUserHandlers:
    """Users and their credentials."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def handlers(self) -> Handlers:
        """By API."""
        return {
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: self.describe,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: self.alter,
        }

    async def describe(self, call: Call) -> Reply:
        """DescribeUserScramCredentials: mechanisms and iterations, of all users where none are named."""
        named = None if not call.body.users else [one.name for one in call.body.users]
        try:
            users = await self._context.blocking(describe_users, self._context.access_log)
        except TidelogError as e:
            return {**result(e), "results": ()}
        return {**result(None), "results": described(users, named)}

    async def alter(self, call: Call) -> Reply:
        """AlterUserScramCredentials: each user by itself."""
        deletions, upsertions = defaultdict[str, list[Any]](list), defaultdict[str, list[Any]](list)
        for deletion in call.body.deletions:
            deletions[deletion.name].append(deletion)
        for upsertion in call.body.upsertions:
            upsertions[upsertion.name].append(upsertion)
        results = []
        for user in dict.fromkeys([*deletions, *upsertions]):
            try:
                await self._alter(call, user, deletions[user], upsertions[user])
                results.append({"user": user, **result(None)})
            except TidelogError as e:
                results.append({"user": user, **result(e)})
        return {"results": results}

    async def _alter(self, call: Call, user: str, deletions: Sequence[Any], upsertions: Sequence[Any]) -> None:
        context = self._context
        require_user(user)
        gone = [mechanism_of(one.mechanism) for one in deletions]
        credentials = [credential_of(one) for one in upsertions]
        await context.blocking(alter_user, context.access_log, user, gone, credentials)
        changes = {
            "user": user,
            "deleted": [one.value for one in gone],
            "set": [{"mechanism": one.mechanism.value, "iterations": one.iterations} for one in credentials],
        }
        context.access.audit.changed(requester(call), call.key.name, changes)
        await context.access.look_now()


def described(users: Mapping[str, UserDescription], named: Sequence[str] | None) -> Sequence[Answer]:
    """The answer about these users, or all of them."""
    if named is None:
        return [_described(user) for user in users.values()]
    answers = []
    for user, times in Counter(named).items():
        problem: TidelogError | None = None
        if times > 1:
            problem = DuplicateCredentialError(f"The request names user '{user}' more than once.")
        elif user not in users:
            problem = UnknownCredentialError(f"User '{user}' has no SCRAM credentials.")
        if problem is None:
            answers.append(_described(users[user]))
        else:
            answers.append({"user": user, **result(problem), "credential_infos": ()})
    return answers


def _described(user: UserDescription) -> Answer:
    infos = [{"mechanism": _CODES[one], "iterations": iterations} for one, iterations in user.iterations.items()]
    return {"user": user.name, **result(None), "credential_infos": infos}


def mechanism_of(code: int) -> ScramMechanism:
    """The mechanism of a number. Raises `UnsupportedMechanismError`."""
    mechanism = _MECHANISMS.get(code)
    if mechanism is None:
        raise UnsupportedMechanismError("Credentials are of SCRAM-SHA-256 or SCRAM-SHA-512.")
    return mechanism


def credential_of(asked: Any) -> ScramCredential:
    """The credential that a client sends. Raises `UnacceptableCredentialError`, `UnsupportedMechanismError`."""
    mechanism = mechanism_of(asked.mechanism)
    if not asked.salt or not asked.salted_password:
        raise UnacceptableCredentialError("A credential has a salt and a salted password.")
    try:
        return of_salted_password(mechanism, bytes(asked.salt), bytes(asked.salted_password), asked.iterations)
    except InvalidConfigError as e:
        raise UnacceptableCredentialError(str(e)) from e

"""Subscriptions of clients' metrics as configurations, as kafka-client-metrics.sh asks about them (KIP-714)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from tidelog.broker.base.context import Context
from tidelog.broker.telemetry.subscriptions import MetricsSubscription
from tidelog.broker.wire.errors import InvalidRequestError
from tidelog.log.base.typed_values import listed
from tidelog.log.config.overrides import KeyDescription
from tidelog.operations.configs import KeyChange, KeyOperation

# More subscriptions would make each client's question dear, and longer names no rows.
MOST: Final = 1_000
LONGEST_NAME: Final = 249
# Keys that are lists.
_LISTS: Final = ("metrics", "match")

# What makes the keys of a subscription of those before.
Change: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str]]


class ClientMetricsConfigs:
    """The subscriptions, as the log of access has them. A subscription without any key is none."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def names(self) -> list[str]:
        """Those there are, sorted."""
        return sorted(self._context.access.state.client_metrics)

    def describe(self, name: str) -> Sequence[KeyDescription]:
        """All keys of a subscription, those of one that is not there by their defaults."""
        _require_name(name)
        return MetricsSubscription.parse(self._context.access.state.client_metrics.get(name, {})).describe()

    def alter(self, name: str, changes: Sequence[KeyChange], *, validate_only: bool) -> None:
        """Change keys. Raises `InvalidRequestError`, `InvalidConfigError`."""
        self._change(name, lambda before: _altered(before, changes), validate_only)

    def replace(self, name: str, values: Mapping[str, str], *, validate_only: bool) -> None:
        """Set these keys, and no others. Raises as `alter`."""
        self._change(name, lambda _: values, validate_only)

    def _change(self, name: str, change: Change, validate_only: bool) -> None:
        _require_name(name)
        subscriptions = self._context.access.state.client_metrics

        def checked(before: Mapping[str, str]) -> Mapping[str, str]:
            after = MetricsSubscription.parse(change(before)).overrides
            if after and not before and len(subscriptions) >= MOST:
                raise InvalidRequestError(f"There are {MOST} subscriptions already: delete one first.")
            return after

        if validate_only:
            checked(subscriptions.get(name, {}))
        else:
            self._context.access_log.alter_client_metrics(name, checked)


def _require_name(name: str) -> None:
    if not name:
        raise InvalidRequestError("Client metrics subscription name must not be empty")
    if len(name) > LONGEST_NAME:
        raise InvalidRequestError(f"A subscription's name has at most {LONGEST_NAME} characters.")


def _altered(before: Mapping[str, str], changes: Iterable[KeyChange]) -> Mapping[str, str]:
    """The keys after changes; what they are is judged later."""
    after = dict(before)
    for change in changes:
        if change.operation is KeyOperation.DELETE:
            after.pop(change.name, None)
        elif change.operation is KeyOperation.SET:
            after[change.name] = change.value
        elif change.name not in _LISTS:
            raise InvalidRequestError(f"Can't {change.operation.name} value for key {change.name}: it is no list.")
        else:
            words, given = listed(after.get(change.name, "")), listed(change.value)
            if change.operation is KeyOperation.APPEND:
                words += [word for word in given if word not in words]
            else:
                words = [word for word in words if word not in given]
            after[change.name] = ",".join(words)
    return after

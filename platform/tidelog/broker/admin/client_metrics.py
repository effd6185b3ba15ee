"""Subscriptions of clients' metrics as configurations, as kafka-client-metrics.sh asks about them (KIP-714)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from tidelog.broker.base.context import Context
from tidelog.broker.telemetry.subscriptions import MetricsSubscription
from tidelog.broker.wire.errors import InvalidRequestError
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.config.overrides import KeyDescription
from tidelog.operations.configs import KeyChange, changed_values

# More subscriptions would make each client's question dear, and longer names no rows.
MOST: Final = 1_000
LONGEST_NAME: Final = 249

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

        def checked(subscriptions: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
            before = subscriptions.get(name, {})
            after = MetricsSubscription.parse(change(before)).overrides
            if after and not before and len(subscriptions) >= MOST:
                raise InvalidRequestError(f"There are {MOST} subscriptions already: delete one first.")
            return after

        if validate_only:
            checked(self._context.access.state.client_metrics)
        else:
            self._context.access_log.alter_client_metrics(name, checked)


def _require_name(name: str) -> None:
    if not name:
        raise InvalidRequestError("Client metrics subscription name must not be empty")
    if len(name) > LONGEST_NAME:
        raise InvalidRequestError(f"A subscription's name has at most {LONGEST_NAME} characters.")


def _altered(before: Mapping[str, str], changes: Sequence[KeyChange]) -> Mapping[str, str]:
    """The keys after changes; what they are is judged later."""
    try:
        values = changed_values(MetricsSubscription.parse(before), changes)
    except InvalidConfigError as e:
        raise InvalidRequestError(str(e)) from e
    return {name: value for name, value in {**before, **values}.items() if value is not None}

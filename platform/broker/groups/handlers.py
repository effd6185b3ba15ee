"""What a broker answers about groups, by API."""

from tidelog.broker.base.calls import Call, Handler, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.groups.coordinator import GroupCoordinator
from tidelog.broker.groups.describing import DescribingHandlers
from tidelog.broker.groups.finding import FindingHandlers
from tidelog.broker.groups.membership import MembershipHandlers
from tidelog.broker.groups.offsets import OffsetHandlers
from tidelog.broker.wire.apis import OFFERED
from tidelog.broker.wire.errors import ClosedConnectionError


def handlers(context: Context) -> Handlers:
    """Members, offsets and operators, over one coordinator, which ends with the broker."""
    coordinator = GroupCoordinator(context)
    context.at_close.append(coordinator.close)
    answered = {
        **MembershipHandlers(context, coordinator).handlers(),
        **OffsetHandlers(context, coordinator).handlers(),
        **DescribingHandlers(context, coordinator).handlers(),
        **FindingHandlers(context).handlers(),
    }
    return {key: _offered_only(handler) for key, handler in answered.items()}


def _offered_only(handler: Handler) -> Handler:
    async def handle(call: Call) -> Reply:
        if call.version not in OFFERED[call.key]:
            raise ClosedConnectionError(f"Version {call.version} of {call.key.name} is not offered.")
        return await handler(call)

    return handle

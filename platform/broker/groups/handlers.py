"""What a broker answers about groups, by API."""

from tidelog.broker.base.calls import Handlers
from tidelog.broker.base.context import Context
from tidelog.broker.groups.coordinator import GroupCoordinator
from tidelog.broker.groups.describing import DescribingHandlers
from tidelog.broker.groups.finding import FindingHandlers
from tidelog.broker.groups.membership import MembershipHandlers
from tidelog.broker.groups.offsets import OffsetHandlers


def handlers(context: Context) -> Handlers:
    """Members, offsets and operators, over one coordinator, which ends with the broker."""
    coordinator = GroupCoordinator(context)
    context.at_close.append(coordinator.close)
    return {
        **MembershipHandlers(context, coordinator).handlers(),
        **OffsetHandlers(context, coordinator).handlers(),
        **DescribingHandlers(context, coordinator).handlers(),
        **FindingHandlers(context).handlers(),
    }

"""What a broker answers about groups, by API."""

from tidelog.broker.base.calls import Handlers
from tidelog.broker.base.context import Context
from tidelog.broker.groups.consumer_groups import ConsumerGroupHandlers
from tidelog.broker.groups.coordinator import GroupCoordinator
from tidelog.broker.groups.describing import DescribingHandlers
from tidelog.broker.groups.finding import FindingHandlers
from tidelog.broker.groups.membership import MembershipHandlers
from tidelog.broker.groups.offsets import OffsetHandlers
from tidelog.broker.groups.streams_groups import StreamsGroupHandlers
from tidelog.broker.groups.transactional_offsets import TransactionalOffsetHandlers


def handlers(context: Context) -> Handlers:
    """Members, offsets and operators, over one coordinator, which ends with the broker."""
    coordinator = GroupCoordinator(context)
    context.at_close.append(coordinator.close)
    offsets = OffsetHandlers(context, coordinator)
    return {
        **MembershipHandlers(context, coordinator).handlers(),
        **ConsumerGroupHandlers(context, coordinator).handlers(),
        **StreamsGroupHandlers(context, coordinator).handlers(),
        **offsets.handlers(),
        **TransactionalOffsetHandlers(context, coordinator, offsets).handlers(),
        **DescribingHandlers(context, coordinator).handlers(),
        **FindingHandlers(context).handlers(),
    }

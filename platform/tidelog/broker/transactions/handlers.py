"""What a broker answers about transactions, by API."""

from tidelog.broker.base.calls import Handlers
from tidelog.broker.base.context import Context
from tidelog.broker.transactions.coordinator import TransactionCoordinator
from tidelog.broker.transactions.describing import TransactionDescribing
from tidelog.broker.transactions.markers import MarkerHandlers
from tidelog.broker.transactions.producing import ProducingHandlers


def handlers(context: Context) -> Handlers:
    """Producers and operators, over one coordinator, which ends with the broker."""
    coordinator = TransactionCoordinator(context)
    context.at_close.append(coordinator.close)
    return {
        **ProducingHandlers(context, coordinator).handlers(),
        **TransactionDescribing(context, coordinator).handlers(),
        **MarkerHandlers(context, coordinator).handlers(),
    }

"""What this part of a broker answers."""

from tidelog.broker.base.calls import Handlers
from tidelog.broker.base.context import Context
from tidelog.broker.fetch.cold_reads import ColdReads
from tidelog.broker.fetch.fetching import Fetching
from tidelog.broker.fetch.offsets import Offsets
from tidelog.broker.records.codec import record_codec
from tidelog.broker.wire.apis import ApiKey


def handlers(context: Context) -> Handlers:
    """Fetch, ListOffsets and OffsetForLeaderEpoch."""
    offsets = Offsets(context)
    return {
        ApiKey.FETCH: Fetching(context, ColdReads(context, record_codec())),
        ApiKey.LIST_OFFSETS: offsets.list,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: offsets.of_epochs,
    }

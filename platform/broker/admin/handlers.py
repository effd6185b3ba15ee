"""Which requests of administration are answered by what."""

from tidelog.broker.admin.metadata import MetadataHandler
from tidelog.broker.admin.topics import TopicHandlers
from tidelog.broker.base.calls import Handlers
from tidelog.broker.base.context import Context
from tidelog.broker.wire.apis import ApiKey


def handlers(context: Context) -> Handlers:
    """The handlers of this part, over a broker's surroundings."""
    topics = TopicHandlers(context)
    return {
        ApiKey.METADATA: MetadataHandler(context),
        ApiKey.CREATE_TOPICS: topics.create,
    }

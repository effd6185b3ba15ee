"""An admin client with a logger of its own, which polls while it waits. Argument: address."""

import logging
import sys

from confluent_kafka import libversion, version
from confluent_kafka.admin import AdminClient

logger = logging.getLogger("admin")
logger.setLevel(logging.DEBUG)
logger.addHandler(logging.StreamHandler())
admin = AdminClient({"bootstrap.servers": sys.argv[1], "debug": "all"}, logger=logger)
future = admin.list_consumer_groups(request_timeout=10)
while not future.done():
    admin.poll(0.1)
print(len(future.result().valid), future.result().errors)
print(isinstance(version(), str), libversion()[1] >= 0x020B0000)

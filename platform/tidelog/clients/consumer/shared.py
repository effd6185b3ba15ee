"""What the parts of a consumer have in common."""

import threading
from dataclasses import dataclass, field

from tidelog.clients.consumer.assignment import ConsumerAssignment
from tidelog.clients.consumer.buffer import Buffer
from tidelog.clients.settings import ConsumerSettings
from tidelog.clients.traffic import Traffic
from tidelog.log.lake import Lake


@dataclass(frozen=True)
class ConsumerShared:
    """`lock` guards the assignment and the buffer, and is notified when there is something new for the application.

    `traffic`: None where the consumer reports no statistics.
    """

    settings: ConsumerSettings
    lake: Lake
    buffer: Buffer
    traffic: Traffic | None
    assignment: ConsumerAssignment = field(default_factory=ConsumerAssignment)
    lock: threading.Condition = field(default_factory=threading.Condition)

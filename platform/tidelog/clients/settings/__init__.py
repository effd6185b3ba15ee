"""tidelog.clients.settings: every configuration key of clients.

The classes of settings are loaded together: each kind of client checks the other kind's keys, and ignores them.
"""

from tidelog.clients.settings.common import AdminSettings, CommonSettings, RecordClientSettings
from tidelog.clients.settings.consumer import ConsumerSettings
from tidelog.clients.settings.producer import ProducerSettings

__all__ = ["AdminSettings", "CommonSettings", "ConsumerSettings", "ProducerSettings", "RecordClientSettings"]

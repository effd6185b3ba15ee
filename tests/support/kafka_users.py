"""A user of brokers with SASL: brokers' settings, and those by which clients of Java and of librdkafka log in."""

from typing import NamedTuple

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism
from tidelog.log.lake import Lake
from tidelog.operations.access import set_password

_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class User(NamedTuple):
    """A user and how it logs in: by SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN."""

    name: str
    password: str
    mechanism: str = "SCRAM-SHA-512"


ADMIN = User("admin", "secret-of-admin")


def login(user: User) -> dict[str, str]:
    """A client's settings in Java's words."""
    module = _PLAIN if user.mechanism == "PLAIN" else _SCRAM
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": user.mechanism,
        "sasl.jaas.config": f'{module} required username="{user.name}" password="{user.password}";',
    }


def native_login(user: User) -> dict[str, object]:
    """A client's settings in librdkafka's words."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": user.mechanism,
        "sasl.username": user.name,
        "sasl.password": user.password,
    }


def secure(lake: Lake, user: User) -> dict[str, str]:
    """Make the user in a lake; the settings by which brokers have a listener on loopback where it is a super user."""
    set_password(AccessLog(lake), user.name, user.password, tuple(ScramMechanism))
    return {
        "listeners": "CLIENTS://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN",
        "super.users": f"User:{user.name}",
    }

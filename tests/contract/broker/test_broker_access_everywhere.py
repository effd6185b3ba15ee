"""What a command changes is in force at every broker of the lake, wherever access is kept, and after a restart."""

from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient
from support.brokers import running_broker
from support.cli_calls import done
from support.waiting import eventually

from tidelog.log.base.errors import LakeNotFoundError
from tidelog.log.lake import Lake


def seen(address: str) -> set[str]:
    """The topics that a client of the broker sees."""
    return set(AdminClient({"bootstrap.servers": address}).list_topics(timeout=60).topics)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_all_brokers_obey(tmp_path, elsewhere):
    address = str(tmp_path / "lake")
    with Lake(address) as lake:
        lake.create_topic("open")
        lake.create_topic("secret")
        if elsewhere:
            lake.alter_config({"access.root": str(tmp_path / "locked")})

    def acl(verb: str) -> None:
        done("acl", verb, "--principal", "User:ANONYMOUS", "--topic", "secret", "--deny", "--lake", address)

    if elsewhere:  # without it no broker begins
        with pytest.raises(LakeNotFoundError), Lake(address) as lake, running_broker(lake):
            pass
        acl("add")
        acl("remove")
    with ExitStack() as brokers:
        one, other = (brokers.enter_context(running_broker(brokers.enter_context(Lake(address)))) for _ in range(2))
        assert seen(one) == seen(other) == {"open", "secret"}
        acl("add")
        for broker in (one, other):
            eventually(lambda at=broker: seen(at) == {"open"}, "a denied topic is listed no more")
        acl("remove")
        for broker in (one, other):
            eventually(lambda at=broker: seen(at) == {"open", "secret"}, "it is listed again")
        acl("add")
    with Lake(address) as lake, running_broker(lake) as again:
        assert seen(again) == {"open"}

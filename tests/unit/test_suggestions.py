"""A name that is near a known one brings that; one that is near none brings no guess."""

import pytest

from tidelog import KafkaException
from tidelog.clients.settings import ConsumerSettings
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.storage.options import known_option

ENTRANCES = {
    "topic": (lambda name: TopicConfig.parse({name: "1"}), "retention.m", "retention.ms"),
    "lake": (lambda name: LakeConfig.parse({name: "1"}), "num.partition", "num.partitions"),
    "client": (
        lambda name: ConsumerSettings.parse({"lake": "/l", "group.id": "g", name: "1"}),
        "auto.ofset.reset",
        "auto.offset.reset",
    ),
    "store": (known_option, "lake.s3.regoin", "lake.s3.region"),
}


@pytest.mark.parametrize(("ask", "near", "known"), ENTRANCES.values(), ids=ENTRANCES)
def test_suggestions_are_near(ask, near, known):
    with pytest.raises((InvalidConfigError, KafkaException), match=rf"nearest .*{known}"):
        ask(near)
    with pytest.raises((InvalidConfigError, KafkaException), match=r"docs/\w+\.md has all") as refusal:
        ask("zzzzzz")
    assert "nearest" not in str(refusal.value)

"""A mirror as a process: it ships until it is stopped, or what is there now."""

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

from tidelog.commands.options import Session
from tidelog.commands.terminal import say
from tidelog.log.lake import Lake
from tidelog.mirror.metrics import mirror_metrics
from tidelog.operations.metric_families import MetricFamily
from tidelog.operations.mirrors import troubles_of
from tidelog.server.process.serving import Ready, Service, serve
from tidelog.server.process.stopping import Stop

if TYPE_CHECKING:
    from tidelog.mirror.kafka.kafka_mirror import KafkaMirror
    from tidelog.mirror.mirror import Mirror


def ship(
    call: Session,
    follower: Lake,
    mirror: "Mirror | KafkaMirror",
    sentence: str,
    metrics: str | None,
    otlp: str | None,
    once: Callable[[Stop], None] | None,
) -> Stop:
    """Run a mirror until it is stopped, or what ships `once`; how it was asked to stop. `sentence`: "" for none."""

    def speak(ready: Ready) -> None:
        say(ready.text, stderr=once is not None or call.as_json)
        sys.stdout.flush()

    shipping = Shipping(mirror, follower, sentence, once, tells_metrics=not call.as_json)
    log = once is None
    return serve(
        call, lambda: nullcontext(follower), lambda *_: shipping, metrics=metrics, otlp=otlp, log=log, say=speak
    )


class Shipping(Service):
    """A mirror, or what ships `once` in place of its rounds without an end."""

    named = "mirror"

    def __init__(
        self,
        mirror: "Mirror | KafkaMirror",
        follower: Lake,
        sentence: str,
        once: Callable[[Stop], None] | None,
        *,
        tells_metrics: bool,
    ) -> None:
        self._mirror = mirror
        self._now_ms = follower.clock.now_ms
        self._sentence = sentence
        self._once = once
        self._tells_metrics = tells_metrics

    def ready(self, metrics: str | None) -> Ready | None:
        """Where the metrics are, and what follows what."""
        lines = [f"metrics at http://{metrics}/metrics"] if metrics is not None and self._tells_metrics else []
        lines += [self._sentence] if self._sentence else []
        return Ready("\n".join(lines), {}) if lines else None

    def run(self, stop: Stop) -> None:
        """Ship."""
        self._mirror.run(stop.within) if self._once is None else self._once(stop)

    def stop(self) -> None:
        """Say that the mirror has ended."""
        self._mirror.close()

    def metrics(self) -> Iterator[MetricFamily]:
        """How far the follower is behind."""
        return mirror_metrics(self._mirror.said, self._now_ms())

    def troubles(self) -> list[str]:
        """What is not shipped, and that the follower is behind."""
        return troubles_of(self._mirror.said, self._now_ms())

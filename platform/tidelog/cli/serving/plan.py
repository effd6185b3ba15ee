"""What `tidelog broker start` was asked for, as a value that a process hands to another; and what it says."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from tidelog.server.process.logs import LogFormat, LogLevel
from tidelog.server.process.serving import Ready

# The modules of the extra `broker`.
BROKER_MODULES = (
    "kio",
    "aiokafka",
    "cramjam",
    "cryptography",
    "joserfc",
    "prometheus_client",
    *(() if sys.platform == "win32" else ("uvloop",)),
)


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """One broker to start.

    `listeners`: {name: (host, port)}; `advertised`: of those of which clients are sent elsewhere; `metrics` and
    `registry`: (host, port); `registry_names`: hosts by which clients may call it. `core`: where its process stays;
    None: on any. `config`: what the file at `config_path` has, and `store`: options of the lake's store; both may be
    secret. `otlp`: the URL of a collector.
    """

    lake: str
    listeners: Mapping[str, tuple[str, int]]
    id: int | None = None
    rack: str | None = None
    metrics: tuple[str, int] | None = None
    store: Mapping[str, str] = field(default_factory=dict, repr=False)
    advertised: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    config_path: str = ""
    registry: tuple[str, int] | None = None
    registry_names: tuple[str, ...] = ()
    maintain: bool = False
    core: int | None = None
    as_json: bool = False
    debug: bool = False
    log_format: LogFormat | None = None
    log_level: LogLevel | None = None
    otlp: str | None = None

    def highest_port(self, processes: int) -> int:
        """The highest port that this number of processes needs."""
        addresses = (*self.listeners.values(), *self.advertised.values(), *filter(None, [self.metrics, self.registry]))
        return max(port + processes - 1 if port else 0 for _, port in addresses)

    def of_process(self, number: int) -> "BrokerPlan":
        """The plan of one of several processes: ids and ports count up from this plan's, where it names them."""

        def later(address: tuple[str, int]) -> tuple[str, int]:
            host, port = address
            return host, port + number if port else 0

        return replace(
            self,
            listeners={name: later(address) for name, address in self.listeners.items()},
            advertised={name: later(address) for name, address in self.advertised.items()},
            id=None if self.id is None else self.id + number,
            metrics=None if self.metrics is None else later(self.metrics),
            registry=None if self.registry is None else later(self.registry),
        )


@dataclass(frozen=True, slots=True)
class ReadyLine:
    """What a broker says once clients can connect. `listeners`: {name: HOST:PORT}, where there are others.

    `registry`: the URL of its registry. `maintains`: whether its command maintains the lake.
    """

    id: int
    listener: str
    lake: str
    metrics: str | None = None
    listeners: Mapping[str, str] = field(default_factory=dict)
    registry: str | None = None
    maintains: bool = False

    def ready(self) -> Ready:
        """It as a sentence, and as a document."""
        return Ready(self.text(), asdict(self))

    def text(self) -> str:
        """It as a sentence."""
        metrics = "" if self.metrics is None else f" (metrics at http://{self.metrics}/metrics)"
        registry = "" if self.registry is None else f" (schemas at {self.registry})"
        where = ", ".join(f"{name}://{at}" for name, at in self.listeners.items()) or self.listener
        upkeep = "and maintains it" if self.maintains else "which a scheduled job has to maintain"
        return f"Broker {self.id} is ready at {where}{metrics}{registry}, with the lake {self.lake}, {upkeep}"

"""A worker and its REST API as a server of HTTP: started, and stopped."""

import gc
import logging
from collections.abc import Iterable, Iterator
from typing import Final

from starlette.types import Receive, Scope, Send

from tidelog.connect.api.metrics import worker_metrics
from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.api.routes import RestApp
from tidelog.connect.runtime.plugins import Plugins
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.connect.worker import Worker
from tidelog.log.lake import Lake
from tidelog.operations.connector_health import all_troubles, unwell
from tidelog.operations.metric_families import MetricFamily
from tidelog.server.base.listener_settings import TlsSettings
from tidelog.server.connections import HttpBounds
from tidelog.server.logins import HttpAccess, HttpLogins
from tidelog.server.process.stopping import Stop
from tidelog.server.requests import JSON
from tidelog.server.serving import HttpServer

_STOPS_WITHIN_S: Final = 5
# New objects between two collections of garbage.
_OBJECTS: Final = 100_000


class ConnectServer(HttpServer):
    """A worker over a lake whose REST API is at an address. `address`: (host, port); port 0 takes a free one.

    `advertised`: the host and port that statuses name, where it is not the address. `access`: what clients may do;
    None: everything. `tls`: None speaks HTTP without encryption. `host_names`: as `HttpServer` has them. Raises
    `HttpAddressError`, `TlsError`, and what reading the shared topics raises.
    """

    logger = logging.getLogger("tidelog.connect")

    def __init__(
        self,
        lake: Lake,
        address: tuple[str, int],
        settings: WorkerSettings | None = None,
        plugins: Plugins | None = None,
        *,
        bounds: HttpBounds | None = None,
        advertised: str | None = None,
        access: HttpAccess | None = None,
        tls: TlsSettings | None = None,
        host_names: Iterable[str] = (),
    ) -> None:
        bounds = bounds or HttpBounds()
        super().__init__(
            self._answer,
            address,
            lake.clock,
            named="worker",
            media_type=JSON,
            bounds=bounds,
            tls=tls,
            stops_within_s=_STOPS_WITHIN_S,
            host_names=(*host_names, *([] if advertised is None else [advertised.rpartition(":")[0].strip("[]")])),
            authenticates=access is not None and access.authenticates,
        )
        self.worker_id = advertised or "{}:{}".format(*self.address)
        self.worker = Worker(lake, self.worker_id, settings, plugins)
        self.about = {"lake": lake.uri, "group": self.worker.shared.settings.group_id}
        self._logins = None if access is None else HttpLogins(lake, access, "CONNECT")
        self.app = RestApp(ConnectOperations(self.worker), bounds, self._logins)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application: a worker needs the address that it is served at."""
        await self.app(scope, receive, send)

    def begin(self, **counts: int) -> None:
        """Run connectors."""
        super().begin(**counts, connectors=self.worker.shared.configs.look(lambda state: len(state.connectors)))
        self.worker.start()

    def end(self) -> None:
        """Have other workers run them."""
        self.worker.stop()
        super().end()

    def metrics(self) -> Iterator[MetricFamily]:
        """What is counted, as of now."""
        return worker_metrics(self.worker, self.app, self.connections)

    def troubles(self) -> list[str]:
        """What is not well with the lake's connectors, in words, as the topics of its workers say."""
        return list(all_troubles(unwell(self.worker.shared.connectors.describe(), None)))

    def run(self, stop: Stop) -> None:
        """Run connectors until `stop`, with what is there now kept out of collections of garbage.

        A batch's thousands of objects end together: a look after each 700 takes a tenth more.
        """
        gc.collect()
        gc.freeze()
        gc.set_threshold(_OBJECTS)
        super().run(stop)

"""Which requests are about a lake's upkeep."""

from typing import Final

from tidelog.console.base.calls import for_all, needs
from tidelog.console.upkeep.health import check, doctor, run_check
from tidelog.console.upkeep.maintenance import maintenance, newest_run, run_now
from tidelog.console.upkeep.transactions import abort, open_transactions, producers
from tidelog.operations.rights import Right
from tidelog.server.routes import Route

_DESCRIBE: Final = needs(Right.DESCRIBE_CLUSTER)

UPKEEP_ROUTES: Final = (
    Route("GET", "/api/transactions", open_transactions, for_all),
    Route("POST", "/api/transactions/abort", abort, needs(Right.ABORT_TRANSACTION)),
    Route("GET", "/api/producers", producers, for_all),
    Route("GET", "/api/maintenance", maintenance, _DESCRIBE),
    Route("GET", "/api/maintenance/run", newest_run, _DESCRIBE),
    Route("POST", "/api/maintenance/run", run_now, needs(Right.RUN_MAINTENANCE)),
    Route("GET", "/api/check", check, _DESCRIBE),
    Route("POST", "/api/check/run", run_check, _DESCRIBE, reads=True),
    Route("GET", "/api/doctor", doctor, _DESCRIBE),
)

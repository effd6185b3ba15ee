"""`tidelog quota …`: list, set, remove."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from tidelog.cli.access.opening import access_log
from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session, pairs
from tidelog.commands.terminal import console, note, print_json, say

if TYPE_CHECKING:
    from tidelog.access.quotas import Entity, Quota

quotas = family("List, set and remove quotas: how much users, client ids and addresses may take of each broker.")


@dataclass(frozen=True, kw_only=True)
class EntityOptions:
    """Whom a quota is for."""

    panel: ClassVar[str] = "Whom it is for: a user, a client id, both, or an address"

    user: Annotated[str | None, typer.Option(metavar="NAME", help="A user, without 'User:'.", show_default=False)] = (
        None
    )
    client_id: Annotated[str | None, typer.Option(metavar="ID", help="A client id.", show_default=False)] = None
    ip: Annotated[str | None, typer.Option(metavar="ADDRESS", help="An address.", show_default=False)] = None
    default_user: Annotated[bool, typer.Option("--default-user", help="Users without a quota of their own.")] = False
    default_client_id: Annotated[
        bool, typer.Option("--default-client-id", help="Client ids without a quota of their own.")
    ] = False
    default_ip: Annotated[bool, typer.Option("--default-ip", help="Addresses without a quota of their own.")] = False

    def entity(self) -> "Entity":
        """Whom it is for. Raises `UsageProblemError`."""
        from tidelog.access.quotas import DEFAULT, Entity
        from tidelog.cli.access.acl_options import host_of

        for name, value, default in (
            ("user", self.user, self.default_user),
            ("client-id", self.client_id, self.default_client_id),
            ("ip", self.ip, self.default_ip),
        ):
            if value is not None and default:
                raise UsageProblemError(f"--{name} and --default-{name} are two quotas: give one of them.")
        return Entity(
            DEFAULT if self.default_user else self.user,
            DEFAULT if self.default_client_id else self.client_id,
            DEFAULT if self.default_ip else None if self.ip is None else host_of(self.ip),
        )


Limits = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME=RATE...",
        help="producer_byte_rate and consumer_byte_rate in bytes a second, request_percentage of a processor,"
        " controller_mutation_rate in partitions a second; of addresses connection_creation_rate a second.",
        show_default=False,
    ),
]


def limits_of(texts: Sequence[str], hint: str = "NAME=RATE") -> "dict[Quota, float]":
    """`producer_byte_rate=1000` and others, as limits. Raises `typer.BadParameter`, `UsageProblemError`."""
    limits = {}
    for name, value in pairs(hint, list(texts)).items():
        try:
            limits[quota_of(name)] = float(value)
        except ValueError:
            raise UsageProblemError(f"{value!r} is no number: {name} is a rate, such as 1048576.") from None
    return limits


def quota_of(name: str) -> "Quota":
    """A quota by Kafka's name of it. Raises `UsageProblemError`."""
    from tidelog.access.quotas import Quota

    if name not in list(Quota):
        raise UsageProblemError(f"{name!r} is no quota of Kafka's. There are {', '.join(Quota)}.")
    return Quota(name)


@command(quotas, "list", example="tidelog quota list")
def list_quotas(call: Session) -> None:
    """List all quotas, with whom they are for."""
    from tidelog.cli.access.views import quota_json, quotas_table
    from tidelog.operations.quotas import describe_quotas

    with access_log(call) as log:
        by_entity = describe_quotas(log)
    out = console()
    if call.as_json:
        print_json([quota_json(entity, limits) for entity, limits in by_entity.items()])
    elif by_entity or not out.is_terminal:
        out.print(quotas_table(by_entity.items()))
    else:
        say("No quotas. 'tidelog quota set' sets one.")


@command(quotas, "set", example="tidelog quota set --user alice producer_byte_rate=1048576", changes=True)
def set_quotas(call: Session, whose: EntityOptions, limits: Limits) -> None:
    """Set limits, beside those that are there. Each broker counts for itself; in force within a second."""
    _change(call, whose, {**limits_of(limits)})


@command(quotas, "remove", example="tidelog quota remove --user alice", changes=True)
def remove_quotas(
    call: Session,
    whose: EntityOptions,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which; all unless given.", show_default=False)
    ] = None,
) -> None:
    """Remove limits."""
    from tidelog.access.quotas import Quota

    _change(call, whose, dict.fromkeys(map(quota_of, names or list(Quota))))


def _change(call: Session, whose: EntityOptions, changes: "Mapping[Quota, float | None]") -> None:
    from tidelog.cli.access.views import quota_json, quotas_table
    from tidelog.operations.quotas import alter_quotas

    entity = whose.entity()
    with access_log(call) as log:
        after = alter_quotas(log, {entity: changes})[entity]
    if call.as_json:
        print_json(quota_json(entity, after))
    elif after:
        console().print(quotas_table([(entity, after)]))
    else:
        note("No limit is left.")

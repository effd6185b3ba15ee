"""`tidelog tenant …`: create, list, alter, remove."""

from typing import Annotated

import typer

from tidelog.cli.access.opening import access_log
from tidelog.cli.access.quotas import limits_of, quota_of
from tidelog.commands.declare import command, family
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, print_json, say

tenants = family("Create, list, alter and remove tenants: teams with names of their own, in ACLs and quotas at once.")

TenantName = Annotated[str, typer.Argument(metavar="NAME", help="The tenant's name.", show_default=False)]
TenantQuotas = Annotated[
    list[str] | None,
    typer.Option("--quota", metavar="NAME=RATE", help="A limit of each of its users on each broker. Repeatable."),
]


@command(
    tenants,
    "create",
    example="tidelog tenant create sales --prefix sales. --quota producer_byte_rate=1048576",
    changes=True,
)
def create(
    call: Session,
    name: TenantName,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="How names of its topics, groups and transactional ids begin.")
    ],
    quota: TenantQuotas = None,
    user: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A user of it; its own name unless given. Repeatable.")
    ] = None,
) -> None:
    """Create a tenant: its users may do all to what the prefix names, within the quotas. One entry of the log.

    Users get their passwords by 'tidelog user add'. The prefix is a part of the names; nothing is rewritten.
    """
    from tidelog.access.state import Tenant
    from tidelog.cli.access.views import tenant_json, tenants_table

    wanted = Tenant(name, prefix, tuple(dict.fromkeys(user or [name])), limits_of(quota or [], "--quota"))
    with access_log(call) as log:
        made = log.create_tenant(wanted)
    if call.as_json:
        print_json(tenant_json(made))
    else:
        console().print(tenants_table([made]))


@command(tenants, "list", example="tidelog tenant list")
def list_tenants(call: Session) -> None:
    """List tenants. A pipe gets the names only, one a line."""
    from tidelog.cli.access.views import tenant_json, tenants_table

    with access_log(call) as log:
        tenant_list = [tenant for _, tenant in sorted(log.look().tenants.items())]
    out = console()
    if call.as_json:
        print_json([tenant_json(tenant) for tenant in tenant_list])
    elif not out.is_terminal:
        for tenant in tenant_list:
            say(tenant.name)
    elif tenant_list:
        out.print(tenants_table(tenant_list))
    else:
        say("No tenants. 'tidelog tenant create' creates one.")


@command(
    tenants,
    "alter",
    example="tidelog tenant alter sales --add-user bo --quota consumer_byte_rate=2097152",
    changes=True,
)
def alter(
    call: Session,
    name: TenantName,
    add_user: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A further user. Repeatable.")] = None,
    remove_user: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A user that leaves it. Repeatable.")
    ] = None,
    quota: TenantQuotas = None,
    remove_quota: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A limit to take away. Repeatable.")
    ] = None,
) -> None:
    """Change a tenant's users and quotas, and with them its ACLs. The prefix stays, since topics have it."""
    from tidelog.cli.access.views import tenant_json, tenants_table

    limits = {**dict.fromkeys(map(quota_of, remove_quota or ())), **limits_of(quota or [], "--quota")}
    with access_log(call) as log:
        changed = log.alter_tenant(name, add_users=add_user or (), remove_users=remove_user or (), limits=limits)
    if call.as_json:
        print_json(tenant_json(changed))
    else:
        console().print(tenants_table([changed]))


@command(tenants, "remove", example="tidelog tenant remove sales", changes=True)
def remove(call: Session, name: TenantName) -> None:
    """Remove a tenant with its ACLs and quotas. Its topics, groups and users stay."""
    from tidelog.cli.access.views import tenant_json

    with access_log(call) as log:
        gone = log.remove_tenant(name)
    if call.as_json:
        print_json(tenant_json(gone))
    else:
        say(f"Removed tenant {name}. Topics that begin with '{gone.prefix}', and its users, are there still.")

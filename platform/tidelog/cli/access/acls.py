"""`tidelog acl …`: list, add, remove; export as a policy of the store."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.access.acl_options import AclOptions, principal_of
from tidelog.cli.access.opening import access_log
from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, note, print_json, say

if TYPE_CHECKING:
    from tidelog.access.model import Acl

acls = family("List, add and remove ACLs: what principals may do by brokers. Export them as a policy of the store.")


@command(acls, "list", example="tidelog acl list --topic orders")
def list_acls(call: Session, wanted: AclOptions) -> None:
    """List ACLs: all, or those that concern what is given, such as prefixed ones of a topic's name."""
    from tidelog.access.model import acl_fields
    from tidelog.cli.access.views import acls_table
    from tidelog.operations.access import describe_acls

    filters = wanted.filters(exact=False)
    with access_log(call) as log:
        bindings = describe_acls(log, filters)
    out = console()
    if call.as_json:
        print_json([acl_fields(acl) for acl in bindings])
    elif bindings or not out.is_terminal:
        out.print(acls_table(bindings))
    else:
        say("No such ACLs." if not wanted.is_empty else "No ACLs. 'tidelog acl add' adds one.")


@command(acls, "add", example="tidelog acl add --principal User:alice --operation read --topic orders", changes=True)
def add(
    call: Session,
    wanted: AclOptions,
    producer: Annotated[
        bool, typer.Option("--producer", help="What a producer to the topics, or by the transactional ids, needs.")
    ] = False,
    consumer: Annotated[
        bool, typer.Option("--consumer", help="What a consumer of the topics in the groups needs.")
    ] = False,
) -> None:
    """Add ACLs, one for each principal, host, operation and resource that is given; all operations unless given.

    They are in force on all brokers within a second. ACLs bind clients that hold no credentials of the store.
    """
    from tidelog.operations.access import create_acls

    made = wanted.acls(producer=producer, consumer=consumer)
    with access_log(call) as log:
        new = create_acls(log, made, sensible=True)
    _show_changed(call, new, otherwise="All of them are there already.")


@command(acls, "remove", example="tidelog acl remove --principal User:alice --topic orders", changes=True)
def remove(
    call: Session,
    wanted: AclOptions,
    everything: Annotated[bool, typer.Option("--all", help="All ACLs.")] = False,
) -> None:
    """Remove the ACLs that are given, by the names that they have; shows which."""
    if wanted.is_empty != everything:
        raise UsageProblemError(
            "Nothing was removed: say which ACLs, by --principal, --topic and others, or --all for all of them."
        )
    from tidelog.operations.access import delete_acls

    with access_log(call) as log:
        gone = sorted({acl for found in delete_acls(log, wanted.filters(exact=True)) for acl in found})
    _show_changed(call, gone, otherwise="There were no such ACLs.")


def _show_changed(call: Session, changed: "Sequence[Acl]", otherwise: str) -> None:
    from tidelog.access.model import acl_fields
    from tidelog.cli.access.views import acls_table

    if call.as_json:
        print_json([acl_fields(acl) for acl in changed])
    elif changed:
        console().print(acls_table(changed))
    else:
        note(otherwise)


@command(acls, "export", example="tidelog acl export --iam --principal User:alice > alice.json")
def export(
    call: Session,
    iam: Annotated[bool, typer.Option("--iam", help="As policies of AWS IAM, the one form there is.")] = False,
    principal: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this principal's policy.", show_default=False)
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="The lake's place in S3, where it is not the lake's own.", show_default=False
        ),
    ] = None,
) -> None:
    """Print the policies of the store that come nearest to the ACLs, for clients that read and write it themselves.

    One policy, or {principal: policy} where there are several. What a policy can't express is named on stderr, or under
    "not_expressed" with --format json.
    """
    from tidelog.access.iam_policy import iam_policies

    if not iam:
        raise UsageProblemError("Say in which form: --iam.")
    with access_log(call) as log:
        state, address = log.look(), root or call.named_lake()
    exported = iam_policies(state, address, principals=None if principal is None else [principal_of(principal)])
    gaps = [{"principal": gap.principal, "what": gap.what, "why": gap.why} for gap in exported.gaps]
    if call.as_json:
        print_json({"policies": exported.policies, "not_expressed": gaps})
        return
    print_json(next(iter(exported.policies.values())) if principal is not None else exported.policies)
    for gap in exported.gaps:
        note(f"{gap.principal}: {gap.what}: {gap.why}")

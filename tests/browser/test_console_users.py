"""People who log in to the console's page: each is offered what the ACLs allow, and is refused the rest."""

import pytest
from playwright.sync_api import expect
from support.browsers import visit
from support.console import running_console

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.server.logins import HttpAccess

USERS = ("reader", "writer", "root")
RIGHTS = (
    ("reader", AclOperation.READ, AclResource.TOPIC, "orders"),
    ("reader", AclOperation.DESCRIBE_CONFIGS, AclResource.TOPIC, "orders"),
    ("reader", AclOperation.DESCRIBE, AclResource.GROUP, "billing"),
    ("writer", AclOperation.ALL, AclResource.TOPIC, "orders"),
    ("writer", AclOperation.ALL, AclResource.GROUP, "billing"),
)
# Where a change is offered, to whom: a page and the label of its button.
OFFERS = (
    ("topics", "New topic", {"writer", "root"}),  # an ACL of a name that may be created
    ("topics", "Delete orders", {"writer", "root"}),
    ("topics/orders/records", "Produce", {"writer", "root"}),
    ("topics/orders/partitions", "Add partitions", {"writer", "root"}),
    ("topics/orders/partitions", "Delete", {"writer", "root"}),
    ("topics/orders/config", "Change retention.ms", {"writer", "root"}),
    ("groups/billing", "Reset offsets", {"writer", "root"}),
    ("groups/billing", "Delete", {"writer", "root"}),
)
PRODUCE = """async () => {
    const { csrf } = await (await fetch("api/session")).json();
    const headers = { "X-Tidelog-CSRF": csrf, "Content-Type": "application/json" };
    const body = JSON.stringify({ value: { text: "x" } });
    return (await fetch("api/topics/orders/records", { method: "POST", headers, body })).status;
}"""


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    address = tmp_path_factory.mktemp("users") / "lake"
    with Lake(address) as lake:
        access = AccessLog(lake)
        for name in USERS:
            access.upsert_scram(name, credential(ScramMechanism.SHA_256, f"{name}-pw", b"salt" * 4))
        access.add_acls(
            [
                Acl(kind, AclPattern.LITERAL, name, f"User:{user}", "*", operation, AclPermission.ALLOW)
                for user, operation, kind, name in RIGHTS
            ]
        )
        access.close()
        for name in ("orders", "secret"):
            lake.create_topic(name, 1)
            lake.topic(name).append([{"value": f"of {name}"}])
        GroupLog(lake).commit_offsets("billing", {("orders", 0): CommittedOffset(0)})
    settings = HttpAccess(authenticates=True, super_users=frozenset({"User:root"}), failed_delay_s=0.0)
    with running_console(address, access=settings) as found:
        yield found


@pytest.mark.parametrize("user", USERS)
def test_people_are_offered_what_they_may_do(browser, console, user):
    with visit(browser, console.url, user=(user, f"{user}-pw")) as visitor:
        page = visitor.page
        for route, label, whose in OFFERS:
            visitor.go(route)
            expect(page.locator("tbody tr").first).to_be_visible()
            expect(page.get_by_text(f"User:{user}", exact=True)).to_be_visible()
            expect(page.get_by_role("button", name=label, exact=True)).to_have_count(1 if user in whose else 0)
        visitor.go("topics")
        expect(page.locator("tbody tr")).to_have_count(2 if user == "root" else 1)
        visitor.go("maintenance")
        expect(page.get_by_role("button", name="Run now for every topic")).to_have_count(1 if user == "root" else 0)
        assert visitor.findings() == []


def test_a_reader_reads_and_is_refused_the_rest(browser, console):
    with visit(browser, console.url, user=("reader", "reader-pw")) as visitor:
        page = visitor.page
        visitor.go("topics/orders/records")
        expect(page.locator("tbody tr")).to_contain_text("of orders")
        assert page.evaluate(PRODUCE) == 403
        assert console.lake.offsets("orders") == {0: (0, 1)}
        visitor.go("topics/secret/records")
        expect(page.get_by_role("alert")).to_contain_text("User:reader is denied operation")
        visitor.go("maintenance")
        expect(page.get_by_role("alert")).to_contain_text("Not allowed")
        visitor.go("sql")
        visitor.fill("Query", 'SELECT decode(value) AS v FROM "secret"')
        visitor.press("Run")
        expect(page.get_by_role("alert")).to_contain_text("secret")
        visitor.fill("Query", 'SELECT decode(value) AS v FROM "orders"')
        visitor.press("Run")
        expect(page.locator("tbody tr")).to_contain_text("of orders")


def test_a_writer_produces(browser, console):
    with visit(browser, console.url, user=("writer", "writer-pw")) as visitor:
        visitor.go("topics/orders/records")
        visitor.press("Produce")
        visitor.page.get_by_role("dialog").get_by_label("Value", exact=True).fill("written by hand")
        visitor.page.get_by_role("dialog").get_by_role("button", name="Produce").click()
        expect(visitor.page.locator("tbody tr").first).to_contain_text("written by hand")


def test_a_wrong_password_shows_nothing(browser, console):
    with visit(browser, console.url, user=("reader", "wrong")) as visitor:
        visitor.page.goto(console.url)
        expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Log in")
        expect(visitor.page.get_by_role("alert")).to_contain_text("is not right")
        assert "orders" not in visitor.page.content()

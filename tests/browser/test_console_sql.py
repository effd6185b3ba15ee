"""SQL over topics in the console's page: run, refused, cancelled."""

import pyarrow as pa
import pytest
from playwright.sync_api import expect
from support.browsers import visit
from support.console import running_console


@pytest.fixture
def console(tmp_path):
    with running_console(tmp_path / "lake") as found:
        found.lake.create_topic("or-ders", 1)
        values = [b"<b>%d</b>" % number for number in range(450)]
        found.lake.topic("or-ders").append(pa.table({"value": pa.array(values)}))
        yield found


def run(visitor, query):
    visitor.fill("Query", query)
    visitor.page.get_by_label("Query").press("Control+Enter")


def test_a_query_runs_and_its_rows_are_paged(browser, console):
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("sql")
        expect(page.get_by_label("Query")).to_have_value('SELECT * FROM "or-ders" LIMIT 20')
        visitor.press("Run")
        expect(page.locator("main tbody tr")).to_have_count(20)
        run(visitor, 'SELECT "offset", CAST(value AS VARCHAR) AS v FROM "or-ders" ORDER BY 1')
        expect(page.get_by_text("450 rows")).to_be_visible()
        expect(page.locator("main tbody tr").first).to_contain_text("<b>0</b>")
        visitor.press("Next")
        visitor.press("Next")
        expect(page.locator("main tbody tr")).to_have_count(50)
        expect(page.locator("main tbody tr").last).to_contain_text("<b>449</b>")
        assert visitor.findings() == []


def test_what_is_wrong_or_refused_is_told(browser, console):
    with visit(browser, console.url) as visitor:
        visitor.go("sql")
        for query, words in (("SELEC 1", "SELEC"), ("SELECT * FROM read_csv('/etc/passwd')", "disabled")):
            run(visitor, query)
            expect(visitor.page.get_by_role("alert")).to_contain_text(words)


def test_a_query_that_does_not_end_is_cancelled(browser, console):
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("sql")
        run(visitor, "SELECT count(*) FROM range(1000000000) a, range(1000000000) b")
        expect(page.get_by_text("Running")).to_be_visible()
        visitor.press("Cancel")
        expect(page.get_by_text("Cancelled.")).to_be_visible()
        # What was cancelled holds up nothing, and nothing of it is shown later.
        for answer in ("42", "43", "44"):
            run(visitor, "SELECT count(*) FROM range(1000000000) a, range(1000000000) b")
            visitor.press("Cancel")
            run(visitor, f"SELECT {answer} AS answer")
            expect(page.locator("main tbody tr")).to_contain_text(answer)

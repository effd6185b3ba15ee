"""The log of every command: its two formats, which request a line is about, and what is left out of a flood."""

import io
import json
import logging
import re

import pytest
from support.logs import FakeClock

from tidelog.log.base.request_ids import MOST_CHARACTERS, REQUEST, RequestId
from tidelog.server.process.logs import MOST_A_MINUTE, JsonLines, LimitedLines, TextLines, logging_lines

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
logger = logging.getLogger("tidelog.test")


class _Log:
    """A log in memory by a made-up clock."""

    def __init__(self, formatter):
        self.clock = FakeClock()
        self.stream = io.StringIO()
        self.handler = LimitedLines(self.stream, self.clock)
        self.handler.setFormatter(formatter)
        logger.addHandler(self.handler)
        logger.setLevel(logging.DEBUG)

    @property
    def lines(self):
        return self.stream.getvalue().splitlines()


@pytest.fixture
def text():
    log = _Log(TextLines({"broker": "1"}))
    yield log
    logger.removeHandler(log.handler)


@pytest.fixture
def documents():
    log = _Log(JsonLines({"broker": "1"}))
    yield log
    logger.removeHandler(log.handler)


@pytest.fixture
def request_id():
    token = REQUEST.set(RequestId("10.0.0.7", 51234, "app", 17))
    yield "10.0.0.7:51234/app/17"
    REQUEST.reset(token)


def test_a_line_of_text(text):
    logger.warning("The store is away: %s", "no route")
    assert re.fullmatch(f"{TIME} WARNING broker=1 The store is away: no route", text.lines[0])


def test_a_line_of_json(documents):
    logger.warning("The store is away: %s", "no route")
    (line,) = map(json.loads, documents.lines)
    assert re.fullmatch(TIME, line.pop("time"))
    assert line == {
        "level": "WARNING", "logger": "tidelog.test", "broker": "1", "message": "The store is away: no route",
    }  # fmt: skip


def test_a_line_names_the_request_that_it_is_about(text, request_id):
    logger.info("Refused")
    assert text.lines[0].endswith(f" INFO broker=1 request={request_id} Refused")


def test_a_document_names_the_request_that_it_is_about(documents, request_id):
    logger.info("Refused")
    assert json.loads(documents.lines[0])["request"] == request_id


def test_a_line_about_one_of_many_requests_names_that_one(text):
    logger.info("Appended", extra={"request": RequestId("h", 1, None, 2)})
    assert "request=h:1/-/2 Appended" in text.lines[0]


def test_a_name_begins_no_line_of_its_own(text):
    logger.warning("Topic %s", "a\n2026-01-01T00:00:00.000Z ERROR broker=1 All is lost\r")
    assert len(text.lines) == 1
    assert r"a\n2026" in text.lines[0]


def test_a_client_id_is_one_short_word():
    said = str(RequestId("h", 1, 'a b"\n/' + "x" * 1000, 2))
    assert said == f"h:1/{'a_b___' + 'x' * (MOST_CHARACTERS - 6)}/2"


def test_a_traceback_is_part_of_its_document(documents):
    try:
        raise ValueError("what")
    except ValueError:
        logger.exception("Failed")
    (line,) = map(json.loads, documents.lines)
    assert "ValueError: what" in line["traceback"]


def test_a_flood_of_one_kind_is_counted_and_others_are_written(text):
    for number in range(MOST_A_MINUTE + 50):
        logger.warning("Flood %d", number)
    logger.warning("Another")
    assert len(text.lines) == MOST_A_MINUTE + 1
    text.clock.pass_s(61)
    logger.warning("Flood %d", 1_000)
    assert text.lines[-2].endswith("WARNING broker=1 50 more lines like this one were left out: Flood %d")
    assert text.lines[-1].endswith("Flood 1000")


def test_what_was_counted_is_written_at_the_end(text):
    for _ in range(MOST_A_MINUTE + 2):
        logger.warning("Flood")
    text.handler.close()
    assert text.lines[-1].endswith("2 more lines like this one were left out: Flood")


def test_levels_of_one_text_are_kinds_of_their_own(text):
    for _ in range(MOST_A_MINUTE + 1):
        logger.info("Flood")
    logger.error("Flood")
    assert "ERROR" in text.lines[-1]


def test_an_audit_is_whole():
    log = _Log(TextLines({}))
    for number in range(3 * MOST_A_MINUTE):
        log.handler.handle(logging.LogRecord("tidelog.audit", logging.INFO, "", 0, "%s", (number,), None))
    assert len(log.lines) == 3 * MOST_A_MINUTE


@pytest.mark.parametrize(("log_format", "begins"), [(None, "20"), ("text", "20"), ("json", '{"time":"20')])
def test_a_process_logs_to_stderr_and_nowhere_else(capsys, log_format, begins):
    with logging_lines(log_format, "warning", broker="-") as lines:
        logging.getLogger("tidelog").info("Too low")
        lines.fields["broker"] = "7"
        logging.getLogger("tidelog").warning("Here")
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith(begins)
    assert "7" in line
    assert "Here" in line

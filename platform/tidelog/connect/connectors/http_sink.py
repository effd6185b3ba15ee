"""The HTTP sink: a request for each record or batch, tried again where the answer may change."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import quote

import httpx

from tidelog.connect.config.definition import ConfigDef, ConfigValue, Importance
from tidelog.connect.config.values import SECRET, TEXT, ConnectConfigError, as_written, read_as
from tidelog.connect.converters.json_values import json_bytes, shown, to_json
from tidelog.connect.data.errors import ConnectError, DataError, RetriableConnectError
from tidelog.connect.data.records import SinkRecord
from tidelog.connect.spi.connectors import RawConfig, SinkConnector
from tidelog.connect.spi.sinks import SinkTask, SinkTaskContext
from tidelog.log.base.backoff import BackoffRule
from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.typed_values import Checked, listed, names
from tidelog.log.config.key_type import int_of

_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_CODES: Final = range(100, 600)
_VERSION: Final = "1.0"
_MOST_BACKOFF_S: Final = 60.0
_SHOWN: Final = 500


def status_codes(text: str) -> frozenset[int]:
    """The codes of `400-,500-510,429`: numbers and ranges, an open one up to 599. Raises `ValueError`."""
    codes: set[int] = set()
    for part in listed(text):
        first, dash, last = part.partition("-")
        start, end = int(first), int(last or (599 if dash else first))
        if start not in _CODES or end not in _CODES or start > end:
            raise ValueError(f"{part} is no range of HTTP's codes, 100 to 599")
        codes.update(range(start, end + 1))
    return frozenset(codes)


def header_pairs(text: str, separator: str) -> list[tuple[str, str]]:
    """Headers of `name:value|name:value`. Raises `ConnectConfigError` for one without a colon."""
    pairs = [one.partition(":") for one in listed(text, separator)]
    if not all(name.strip() and colon for name, colon, _ in pairs):
        raise ConnectConfigError(f"headers takes name:value, separated by {separator!r}, not {text!r}.")
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def _check_address(text: str) -> None:
    if not text.startswith(("http://", "https://")):
        raise ValueError("give http://… or https://…")


HTTP_KEYS: Final = (
    ConfigDef()
    .define("http.api.url", Checked(TEXT, _check_address), REQUIRED, _HIGH,
            "Where records go; ${topic} and ${key} stand for a record's (${key} with batch.max.size=1 only).")
    .define("request.method", as_written("POST", "PUT", "PATCH"), "POST", _HIGH,
            "POST, PUT or PATCH; a null value may delete.")
    .define("headers", TEXT, "", _HIGH, "Headers as name:value, separated by header.separator.")
    .define("header.separator", TEXT, "|", _LOW, "What separates headers.")
    .define("request.body.format", names("json", "string"), "json", _MEDIUM, "json: values as JSON. string: as texts.")
    .define("batch.max.size", int_of(1), 1, _HIGH, "How many records a request has at most.")
    .define("batch.prefix", TEXT, "[", _LOW, "What a request with more than one record begins with.")
    .define("batch.suffix", TEXT, "]", _LOW, "What it ends with.")
    .define("batch.separator", TEXT, ",", _LOW, "What separates its records.")
    .define("behavior.on.null.values", names("ignore", "delete", "fail"), "ignore", _LOW,
            "ignore, delete (DELETE at the record's address), or fail.")
    .define("behavior.on.error", names("fail", "ignore"), "fail", _MEDIUM,
            "fail: a refused record goes to the dead letter topic, or fails the task, as errors.tolerance says. "
            "ignore: it is left out.")
    .define("auth.type", as_written("none", "basic", "bearer", "oauth2"), "none", _HIGH,
            "none, basic, bearer or oauth2.")
    .define("connection.user", TEXT, "", _MEDIUM, "The user, of basic.")
    .define("connection.password", SECRET, None, _MEDIUM, "The password, of basic.")
    .define("bearer.token", SECRET, None, _MEDIUM, "The token, of bearer.")
    .define("oauth2.token.url", TEXT, "", _MEDIUM, "Where tokens are, of oauth2 (client credentials).")
    .define("oauth2.client.id", TEXT, "", _MEDIUM, "The client's id.")
    .define("oauth2.client.secret", SECRET, None, _MEDIUM, "The client's secret.")
    .define("oauth2.client.scope", TEXT, "", _LOW, "The scope, where one is asked for.")
    .define("max.retries", int_of(0), 10, _MEDIUM, "How often a request is tried again.")
    .define("retry.backoff.ms", int_of(0), 3000, _MEDIUM,
            "How long after the first failure; doubled with each, up to a minute, unless the answer has a Retry-After.")
    .define("retry.on.status.codes", read_as(status_codes), "408,429,500-", _MEDIUM,
            "Codes of answers that may change.")
    .define("http.connect.timeout.ms", int_of(1), 30_000, _MEDIUM, "How long a connection may take.")
    .define("http.request.timeout.ms", int_of(1), 30_000, _MEDIUM, "How long an answer may take.")
)  # fmt: skip


@dataclass(frozen=True)
class HttpRequest:
    """A request and the records in it."""

    method: str
    url: str
    body: bytes
    records: Sequence[SinkRecord]


class _RefusedError(Exception):
    """An answer that is not one of success. `wait_s`: how long to wait where it may change, None where not."""

    def __init__(self, why: str, wait_s: float | None) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class HttpSinkTask(SinkTask):
    """Sends records in their order, the next request after the answer to the one before."""

    def __init__(self, clock: Clock | None = None, transport: httpx.BaseTransport | None = None) -> None:
        self._clock, self._transport = clock or SystemClock(), transport
        self._client: httpx.Client | None = None

    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        """Make the client; nothing is sent."""
        values = self._values = HTTP_KEYS.parse(config)
        self._context = context
        self._retried = status_codes(values["retry.on.status.codes"])
        content = "application/json" if values["request.body.format"] == "json" else "text/plain; charset=utf-8"
        headers = {"content-type": content} | {
            name.lower(): value for name, value in header_pairs(values["headers"], values["header.separator"])
        }
        timeout = httpx.Timeout(
            values["http.request.timeout.ms"] / 1000, connect=values["http.connect.timeout.ms"] / 1000
        )
        self._client = httpx.Client(headers=headers, timeout=timeout, transport=self._transport)
        self._token, self._token_until_s = "", 0.0
        self._sent: dict[tuple[str, int], int] = {}
        self._failures = 0

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Send the records. Raises `RetriableConnectError` while a request may be tried again."""
        fresh = [one for one in records if one.offset >= self._sent.get(one.original, 0)]
        for request in self._requests(fresh):
            try:
                self._send(request)
            except _RefusedError as refused:
                self._failures += 1
                if refused.wait_s is not None and self._failures <= self._values["max.retries"]:
                    backoff = BackoffRule(self._values["retry.backoff.ms"] / 1000, _MOST_BACKOFF_S)
                    wanted_s = max(refused.wait_s, backoff.pause_s(self._failures))
                    self._context.retry_after(min(wanted_s, _MOST_BACKOFF_S))
                    raise RetriableConnectError(f"{refused}. It is tried again.") from refused
                self._give_up(request, ConnectError(f"{refused}. Correct the records or the receiver."))
            self._failures = 0
            self._sent |= {one.original: one.offset + 1 for one in request.records}

    def close(self, partitions: Any) -> None:
        """Forget what was sent: the partitions' next task goes on at the committed offsets."""
        for partition in partitions:
            self._sent.pop(partition, None)

    def stop(self) -> None:
        """Close connections."""
        if self._client is not None:
            self._client.close()

    def _give_up(self, request: HttpRequest, error: Exception) -> None:
        if self._values["behavior.on.error"] == "ignore":
            return
        for record in request.records:
            self._context.errant_record_reporter.report(record, error)

    # --- requests ------------------------------------------------------------------------------------------

    def _requests(self, records: Sequence[SinkRecord]) -> Iterator[HttpRequest]:
        batch: list[tuple[SinkRecord, bytes]] = []
        for record in records:
            if record.value is None:
                yield from self._batched(batch)
                batch = []
                yield from self._of_null(record)
                continue
            try:
                body = self._body(record)
            except DataError as error:
                self._context.errant_record_reporter.report(record, error)
                continue
            if batch and (self._url(batch[0][0]) != self._url(record) or len(batch) == self._values["batch.max.size"]):
                yield from self._batched(batch)
                batch = []
            batch.append((record, body))
        yield from self._batched(batch)

    def _batched(self, batch: Sequence[tuple[SinkRecord, bytes]]) -> Iterator[HttpRequest]:
        if not batch:
            return
        body = batch[0][1]
        if self._values["batch.max.size"] > 1:
            parts = [self._values[key].encode() for key in ("batch.prefix", "batch.separator", "batch.suffix")]
            body = parts[0] + parts[1].join(one for _, one in batch) + parts[2]
        records = [record for record, _ in batch]
        yield HttpRequest(self._values["request.method"].upper(), self._url(records[0]), body, records)

    def _of_null(self, record: SinkRecord) -> Iterator[HttpRequest]:
        behavior = self._values["behavior.on.null.values"]
        if behavior == "delete":
            yield HttpRequest("DELETE", self._url(record), b"", [record])
        elif behavior == "fail":
            where = f"{record.original_topic}-{record.original_partition}"
            error = DataError(
                f"The value at offset {record.offset} of {where} is null. Filter tombstones, or set "
                "behavior.on.null.values."
            )
            self._context.errant_record_reporter.report(record, error)

    def _body(self, record: SinkRecord) -> bytes:
        if self._values["request.body.format"] == "json":
            return json_bytes(to_json(record.value_schema, record.value, numeric=True))
        return shown(record.value).encode()

    def _url(self, record: SinkRecord) -> str:
        url = str(self._values["http.api.url"]).replace("${topic}", quote(record.topic, safe=""))
        key = "" if record.key is None else shown(record.key)
        return url.replace("${key}", quote(key, safe=""))

    # --- answers -------------------------------------------------------------------------------------------

    def _send(self, request: HttpRequest) -> None:
        """Send a request. Raises `_RefusedError` unless the answer is one of success."""
        if self._client is None:
            raise ConnectError("The task is not started.")
        named = f"{request.method} {request.url}"
        try:
            answer = self._client.request(
                request.method, request.url, content=request.body, headers=self._authorization()
            )
        except httpx.TransportError as error:
            raise _RefusedError(f"{named} got no answer: {error}", 0.0) from error
        if answer.is_success:
            return
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            self._token = ""
        wait_s = _retry_after(answer, self._clock) if answer.status_code in self._retried else None
        raise _RefusedError(f"{named} was answered {answer.status_code}: {answer.text[:_SHOWN]}", wait_s)

    def _authorization(self) -> dict[str, str]:
        kind, values = self._values["auth.type"].lower(), self._values
        if kind == "basic":
            password = values["connection.password"]
            auth = httpx.BasicAuth(values["connection.user"], password.text if password is not None else "")
            return {
                "authorization": next(auth.auth_flow(httpx.Request("GET", "http://unused"))).headers["authorization"]
            }
        if kind == "bearer":
            return {"authorization": f"Bearer {values['bearer.token'].text}"}
        return {} if kind == "none" else {"authorization": f"Bearer {self._oauth_token()}"}

    def _oauth_token(self) -> str:
        """A token of client credentials, asked for again a while before it ends."""
        now_s = self._clock.elapsed_s()
        if self._client is not None and (not self._token or now_s >= self._token_until_s):
            values = self._values
            form = {"grant_type": "client_credentials"} | (
                {"scope": values["oauth2.client.scope"]} if values["oauth2.client.scope"] else {}
            )
            basic = httpx.BasicAuth(values["oauth2.client.id"], values["oauth2.client.secret"].text)
            headers = {"content-type": "application/x-www-form-urlencoded"}
            answer = self._client.post(values["oauth2.token.url"], data=form, auth=basic, headers=headers)
            if not answer.is_success:
                raise _RefusedError(f"{values['oauth2.token.url']} was answered {answer.status_code}", None)
            found = answer.json()
            self._token = str(found["access_token"])
            self._token_until_s = now_s + max(0.0, float(found.get("expires_in", 300)) - 30)
        return self._token


def _retry_after(answer: httpx.Response, clock: Clock) -> float:
    """The seconds of a Retry-After header, in either form; 0 without one."""
    text = answer.headers.get("retry-after", "")
    if text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - clock.now_ms() / 1000)
    except ValueError:
        return 0.0


class HttpSink(SinkConnector):
    """Confluent's HttpSinkConnector."""

    names = ("io.confluent.connect.http.HttpSinkConnector", "HttpSinkConnector", "HttpSink")
    version = _VERSION
    guarantee = "At least once: records after the last committed offset are sent again when a task starts again."
    task_class = HttpSinkTask
    keys = HTTP_KEYS

    @classmethod
    def check_together(cls, values: Mapping[str, ConfigValue]) -> None:
        """As of `Connector`."""
        asked = {"basic": ["connection.user"], "bearer": ["bearer.token"],
                 "oauth2": ["oauth2.token.url", "oauth2.client.id", "oauth2.client.secret"]}  # fmt: skip
        for name in asked.get(str(values["auth.type"].value).lower(), ()):
            if not values[name].value:
                values[name].errors.append(f"auth.type={values['auth.type'].value} needs {name}.")
        keyed = "${key}" in str(values["http.api.url"].value)
        if keyed and values["batch.max.size"].value != 1:
            values["batch.max.size"].errors.append("${key} in http.api.url is of one record: set batch.max.size=1.")

    def start(self, config: RawConfig, context: Any) -> None:
        """Check the keys. Raises `ConnectConfigError`."""
        super().start(config, context)
        values = HTTP_KEYS.parse(config)
        header_pairs(values["headers"], values["header.separator"])

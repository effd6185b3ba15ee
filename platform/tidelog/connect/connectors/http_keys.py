"""The keys of the HTTP sink, by Confluent's names, and the codes that `retry.on.status.codes` means."""

from typing import Any, Final

from tidelog.connect.config.definition import REQUIRED, ConfigDef, Importance
from tidelog.connect.config.validators import between, one_of, read_by
from tidelog.connect.config.values import ConfigKind, ConnectConfigError
from tidelog.log.base.typed_values import listed

_TEXT, _INT = ConfigKind.STRING, ConfigKind.INT
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_CODES: Final = range(100, 600)


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


def _http_address(name: str, value: Any) -> None:
    if not str(value).startswith(("http://", "https://")):
        raise ConnectConfigError(f"Invalid value {value} for configuration {name}: give http://… or https://…")


HTTP_KEYS: Final = (
    ConfigDef()
    .define("http.api.url", _TEXT, REQUIRED, _HIGH,
            "Where records go; ${topic} and ${key} stand for a record's (${key} with batch.max.size=1 only).",
            validator=_http_address)
    .define("request.method", _TEXT, "POST", _HIGH, "POST, PUT or PATCH; a null value may delete.",
            validator=one_of("POST", "PUT", "PATCH", any_case=True))
    .define("headers", _TEXT, "", _HIGH, "Headers as name:value, separated by header.separator.")
    .define("header.separator", _TEXT, "|", _LOW, "What separates headers.")
    .define("request.body.format", _TEXT, "json", _MEDIUM, "json: values as JSON. string: as texts.",
            validator=one_of("json", "string"))
    .define("batch.max.size", _INT, 1, _HIGH, "How many records a request has at most.", validator=between(1))
    .define("batch.prefix", _TEXT, "[", _LOW, "What a request with more than one record begins with.")
    .define("batch.suffix", _TEXT, "]", _LOW, "What it ends with.")
    .define("batch.separator", _TEXT, ",", _LOW, "What separates its records.")
    .define("behavior.on.null.values", _TEXT, "ignore", _LOW, "ignore, delete (DELETE at the record's "
                                                              "address), or fail.",
            validator=one_of("ignore", "delete", "fail"))
    .define("behavior.on.error", _TEXT, "fail", _MEDIUM,
            "fail: a refused record goes to the dead letter topic, or fails the task, as errors.tolerance says. "
            "ignore: it is left out.", validator=one_of("fail", "ignore"))
    .define("auth.type", _TEXT, "none", _HIGH, "none, basic, bearer or oauth2.",
            validator=one_of("none", "basic", "bearer", "oauth2", any_case=True))
    .define("connection.user", _TEXT, "", _MEDIUM, "The user, of basic.")
    .define("connection.password", ConfigKind.PASSWORD, None, _MEDIUM, "The password, of basic.")
    .define("bearer.token", ConfigKind.PASSWORD, None, _MEDIUM, "The token, of bearer.")
    .define("oauth2.token.url", _TEXT, "", _MEDIUM, "Where tokens are, of oauth2 (client credentials).")
    .define("oauth2.client.id", _TEXT, "", _MEDIUM, "The client's id.")
    .define("oauth2.client.secret", ConfigKind.PASSWORD, None, _MEDIUM, "The client's secret.")
    .define("oauth2.client.scope", _TEXT, "", _LOW, "The scope, where one is asked for.")
    .define("max.retries", _INT, 10, _MEDIUM, "How often a request is tried again.", validator=between(0))
    .define("retry.backoff.ms", _INT, 3000, _MEDIUM, "How long after the first failure; doubled with each, up to a "
            "minute, unless the answer has a Retry-After.", validator=between(0))
    .define("retry.on.status.codes", _TEXT, "408,429,500-", _MEDIUM, "Codes of answers that may change.",
            validator=read_by(status_codes))
    .define("http.connect.timeout.ms", _INT, 30_000, _MEDIUM, "How long a connection may take.", validator=between(1))
    .define("http.request.timeout.ms", _INT, 30_000, _MEDIUM, "How long an answer may take.", validator=between(1))
)  # fmt: skip

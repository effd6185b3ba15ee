"""The rules that options of the Spark source and of the Spark sink share.

Numbers and booleans are read as Java reads them for Spark's Kafka connector, with Java's messages.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidelog.log.base.errors import InvalidConfigError, InvalidOptionError
from tidelog.log.base.keys import FieldKey, KeyTable, KeyWords, fields_of, keys_of, names_of
from tidelog.log.base.typed_values import Dialect, Flag, Problem, Text, nearest, reason
from tidelog.log.storage.addresses import why_wrong
from tidelog.log.storage.options import StoreOptions, store_options

LAKE = "lake"
BOOTSTRAP_SERVERS = "kafka.bootstrap.servers"
KAFKA_PREFIX = "kafka."
STORE_PREFIX = "lake."
LAKE_OPTION: Final = FieldKey(
    LAKE, Text(), "the address; `kafka.bootstrap.servers` may hold it too, or `TIDELOG_LAKE` in the environment"
)
# What Spark itself hands to every source and sink.
_SPARKS_OWN = ("path", "paths", "checkpointLocation", "queryName")
_NEAR = 0.7
_NEARER = 0.85  # Kafka's clients have settings of similar names

_JAVA: Dialect = {
    Problem.NO_WHOLE_NUMBER: 'For input string: "{value}"',
    Problem.NO_FLAG: 'For input string: "{value}"',
}


@dataclass(frozen=True)
class OptionMapFlag(Flag):
    """True or false, with the message of Spark's option maps (`CaseInsensitiveStringMap.getBoolean`)."""

    def parse(self, value: Any) -> bool:
        """Take the texts."""
        if str(value).lower() not in self.words:
            raise ValueError(f"{value} is not a boolean string")
        return super().parse(value)


class _JavaWords(KeyWords[FieldKey]):
    """Java's messages, which name no option, and then the option that is wrong; a kind may have one of its own."""

    def value(self, name: str, key: FieldKey, given: str) -> Any:  # noqa: ARG002
        try:
            return key.kind.parse(given)
        except ValueError as e:
            advice = f"Set option '{key.name}' to {key.kind.allowed}, without spaces."
            raise InvalidOptionError(f"{reason(e, _JAVA)}. {advice}") from None

    def refused(self, name: str, why: str) -> InvalidOptionError:  # noqa: ARG002
        return InvalidOptionError(why)


_WORDS: Final = _JavaWords()


def lowered(options: Mapping[str, str]) -> dict[str, str]:
    """The options by their names in lower case: names are case-insensitive, values are not."""
    return {name.lower(): value for name, value in options.items()}


def read_options(options: Mapping[str, str], settings: type[Any], refused: Mapping[str, str]) -> dict[str, Any]:
    """What the fields of a class of options have for those that are given; the first of an option's names counts.

    `options` and `refused`, {name: why}, have lower-case names; values are not trimmed. Raises InvalidOptionError.
    """
    table = KeyTable(names_of(settings), _WORDS, refused.get)
    names = [name for name in refused if name in options]
    for key in keys_of(settings).values():
        names += [name for name in (key.name, *key.aliases) if name.lower() in options][:1]
    return fields_of(settings, table.read((name, options[name.lower()]) for name in names))


def read_option(options: Mapping[str, str], key: FieldKey) -> Any:
    """The value of an option, None without one. `options` have lower-case names. Raises InvalidOptionError."""
    name = key.name.lower()
    return _WORDS.value(name, key, options[name]) if name in options else None


def lake_address(options: Mapping[str, str], environment_lake: str | None, missing: str) -> str:
    """Where the lake is: `lake`, else `kafka.bootstrap.servers`, else the environment's TIDELOG_LAKE, trimmed.

    `options` have lower-case names; `missing` is what Kafka's connector says when there is no address. Raises
    InvalidOptionError when there is none, or one that leads to no lake.
    """
    for name in (LAKE, BOOTSTRAP_SERVERS):
        if name in options:
            return _checked_address(options[name], f"Option '{name}'")
    if environment_lake is not None and environment_lake.strip():
        return _checked_address(environment_lake, "Environment variable TIDELOG_LAKE")
    raise InvalidOptionError(
        f"{missing}. Set the option 'lake' to the lake's folder or URI; '{BOOTSTRAP_SERVERS}' and the environment "
        "variable TIDELOG_LAKE may hold it too."
    )


def lake_store_options(options: Mapping[str, str]) -> StoreOptions:
    """The options of the lake's store, `lake.s3.endpoint` and others. Raises InvalidOptionError for an unknown one."""
    try:
        return store_options(options)
    except InvalidConfigError as e:
        raise InvalidOptionError(str(e)) from None


def unknown_options(options: Mapping[str, str], keys: Iterable[FieldKey]) -> list[str]:
    """A warning for each option that neither side of Spark's Kafka connector, nor tidelog, nor Spark has a use for.

    `keys`: the options of both sides, as programs share them. The warning names the one that is nearest, where one is
    near: most often it is what was meant. Names that begin with `kafka.` are `ignored_settings`, those with `lake.` are
    refused by `lake_store_options`.
    """
    names = {name.lower(): name for name in (*(key.name for key in keys), *_SPARKS_OWN, BOOTSTRAP_SERVERS)}
    own = (KAFKA_PREFIX, STORE_PREFIX)
    unknown = [name for name in lowered(options) if name not in names and not name.startswith(own)]
    return [f"Unknown option '{name}' is ignored.{_meant(name, names, _NEAR)}" for name in unknown]


def _meant(name: str, names: Mapping[str, str], cutoff: float) -> str:
    """The question whether the nearest of the known names was meant; nothing when none is near."""
    near = nearest(name, names, cutoff)
    return f" Did you mean '{names[near]}'?" if near else ""


def ignored_settings(
    options: Mapping[str, str], honoured: Collection[str], *, also: Collection[str] = ()
) -> str | None:
    """One warning that names the Kafka client settings nothing here needs, or None when there are none.

    One that is spelt nearly as a setting that counts is named with that one.

    `also` are options outside `kafka.` that set up a Kafka client.
    """
    ignored = sorted(
        name for name in options if name in also or (name.startswith(KAFKA_PREFIX) and name not in honoured)
    )
    if not ignored:
        return None
    counting = {name: name for name in honoured}
    meant = "".join(_meant(name, counting, _NEARER) for name in ignored)
    return f"Ignored, since there is no Kafka client to configure: {', '.join(ignored)}.{meant}"


def _checked_address(text: str, where: str) -> str:
    address = text.strip()
    why = why_wrong(address)
    if why:
        raise InvalidOptionError(f"{where}: {why}")
    return address

"""What is refused about schemas, with the codes that Confluent's registry has for it."""

from tidelog.log.base.errors import InvalidConfigError, InvalidRecordError, TidelogError


class RegistryError(TidelogError):
    """A request that the registry refuses.

    `code`: Confluent's error code (https://docs.confluent.io/platform/current/schema-registry/develop/api.html,
    "Errors"); its first three digits are the status of HTTP.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> int:
        """The status of HTTP, 400 to 599."""
        return int(str(self.code)[:3])


class SchemaError(InvalidConfigError, RegistryError):
    """A schema that can't be read, that references what isn't there, or that uses what no codec here reads."""

    def __init__(self, message: str) -> None:
        RegistryError.__init__(self, 42201, message)


class EncodingError(InvalidRecordError):
    """A row whose columns the schema can't write; the message names the row and the field."""


def invalid_compatibility(level: object) -> RegistryError:
    """A compatibility level that doesn't exist."""
    message = (
        f"Invalid compatibility level {level!r}. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive"
    )
    return RegistryError(42203, message)


def schema_too_large(message: str) -> RegistryError:
    """A schema, or a comparison of two, beyond the registry's bounds."""
    return RegistryError(42209, message)


def malformed(message: str) -> RegistryError:
    """A body of a request whose JSON is of another shape than the API's: Confluent's JsonMappingExceptionMapper."""
    return RegistryError(400, message)

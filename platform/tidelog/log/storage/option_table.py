"""The options of object stores, each in one row: its name in tidelog, obstore's, the variables that stand for it.

The entrances (`tidelog.Lake`, clients, Spark's source and sink, the command line) all take these names.
"""

from dataclasses import dataclass
from typing import Any, Final

from tidelog.log.base.typed_values import Flag, Text, TextKind, Whole

PREFIX: Final = "lake."

# A store's name in options, and the addresses that lead to it.
SCHEMES: Final = {
    "s3": ("s3", "s3a"),
    "gcs": ("gs",),
    "azure": ("az", "abfs", "abfss"),
}
ANY: Final = "store"

_TEXT: Final = Text()
_FLAG: Final = Flag()
_MS: Final = Whole(1, 999_999_999, of="milliseconds")


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    `key`: obstore's name, "" where tidelog itself does what is needed. `variables`: environment variables that count
    where the option isn't given, the first one set wins. `secret`: its value is never shown.
    """

    name: str
    key: str
    doc: str
    variables: tuple[str, ...] = ()
    kind: TextKind[Any] = _TEXT
    secret: bool = False

    @property
    def store(self) -> str:
        """The store that it is for: `s3`, `gcs`, `azure`, or `store` for all of them."""
        return self.name.split(".")[1]


S3_PROFILE: Final = "lake.s3.profile"
S3_KEY_ID: Final = "lake.s3.access.key.id"
S3_SECRET: Final = "lake.s3.secret.access.key"  # noqa: S105 - a name
S3_TOKEN: Final = "lake.s3.session.token"  # noqa: S105 - a name
S3_PATH_STYLE: Final = "lake.s3.path.style.access"

OPTIONS: Final = (
    Option(
        "lake.s3.endpoint",
        "endpoint",
        "Address of the S3 service, AWS's own unless given; of a store of several nodes all their addresses, with"
        " commas between. One that begins with `http://` is spoken to without TLS.",
        ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    ),
    Option("lake.s3.region", "region", "The bucket's region.", ("AWS_REGION", "AWS_DEFAULT_REGION")),
    Option(
        S3_KEY_ID,
        "access_key_id",
        "Access key, which goes with a secret. Without any, the machine's own role counts (EC2, ECS, EKS).",
        ("AWS_ACCESS_KEY_ID",),
        secret=True,
    ),
    Option(S3_SECRET, "secret_access_key", "Its secret.", ("AWS_SECRET_ACCESS_KEY",), secret=True),
    Option(S3_TOKEN, "session_token", "The token of keys that expire.", ("AWS_SESSION_TOKEN",), secret=True),
    Option(
        S3_PROFILE,
        "",
        "Profile of AWS's files that holds keys; `AWS_PROFILE` counts where no key is in the environment.",
        ("AWS_PROFILE",),
    ),
    Option(
        "lake.s3.allow.http",
        "allow_http",
        "Whether to speak without TLS; unless given, as the endpoint begins.",
        ("AWS_ALLOW_HTTP",),
        kind=_FLAG,
    ),
    Option(
        S3_PATH_STYLE,
        "virtual_hosted_style_request",
        "Whether the bucket is in the address's path (true, the default) or in its host name; then it has to be"
        " in the endpoint's, too, where one is given.",
        kind=_FLAG,
    ),
    Option("lake.s3.express", "s3_express", "Whether the bucket is a directory bucket (S3 Express).", kind=_FLAG),
    Option(
        "lake.s3.encryption",
        "server_side_encryption",
        "How S3 encrypts what is stored: `AES256`, `aws:kms` or `aws:kms:dsse`.",
    ),
    Option("lake.s3.encryption.kms.key.id", "sse_kms_key_id", "The key of KMS that it does so with."),
    Option(
        "lake.gcs.service.account.path",
        "service_account",
        "Path of a service account's JSON file.",
        ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"),
    ),
    Option(
        "lake.gcs.service.account.secret",
        "service_account_key",
        "Text of a service account's JSON file.",
        ("GOOGLE_SERVICE_ACCOUNT_KEY",),
        secret=True,
    ),
    Option(
        "lake.gcs.application.credentials",
        "application_credentials",
        "Path of application default credentials.",
        ("GOOGLE_APPLICATION_CREDENTIALS",),
    ),
    Option("lake.gcs.endpoint", "base_url", "Address of the service, Google's own unless given."),
    Option("lake.gcs.allow.http", "allow_http", "Whether to speak without TLS.", kind=_FLAG),
    Option("lake.azure.account.name", "account_name", "The storage account.", ("AZURE_STORAGE_ACCOUNT_NAME",)),
    Option(
        "lake.azure.account.access.key",
        "account_key",
        "The account's key.",
        ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"),
        secret=True,
    ),
    Option(
        "lake.azure.sas.token",
        "sas_token",
        "A shared access signature.",
        ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"),
        secret=True,
    ),
    Option("lake.azure.tenant.id", "tenant_id", "The directory that an application is in.", ("AZURE_TENANT_ID",)),
    Option("lake.azure.client.id", "client_id", "An application's id.", ("AZURE_CLIENT_ID",)),
    Option("lake.azure.client.secret", "client_secret", "Its secret.", ("AZURE_CLIENT_SECRET",), secret=True),
    Option("lake.azure.endpoint", "endpoint", "Address of the service.", ("AZURE_STORAGE_ENDPOINT",)),
    Option("lake.azure.allow.http", "allow_http", "Whether to speak without TLS.", kind=_FLAG),
    Option("lake.store.connect.timeout.ms", "connect_timeout", "How long connecting may take.", kind=_MS),
    Option("lake.store.request.timeout.ms", "timeout", "How long one request may take.", kind=_MS),
    Option(
        "lake.store.retries",
        "max_retries",
        "How often a request that fails is repeated: 10 times unless given.",
        kind=Whole(0, 999_999_999),
    ),
    Option(
        "lake.store.retry.timeout.ms",
        "retry_timeout",
        "How long after a request first went out it may still be repeated: 40 s unless given.",
        kind=_MS,
    ),
    Option(
        "lake.store.retry.backoff.ms",
        "init_backoff",
        "Pause before the first repeat, the later ones grow up to threefold, by chance: 100 ms unless given.",
        kind=_MS,
    ),
    Option("lake.store.retry.backoff.max.ms", "max_backoff", "The longest such pause: 3 s unless given.", kind=_MS),
    Option("lake.store.proxy.url", "proxy_url", "Proxy for all requests.", secret=True),
)
BY_NAME: Final = {option.name: option for option in OPTIONS}

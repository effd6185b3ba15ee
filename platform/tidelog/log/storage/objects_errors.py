"""What obstore's exceptions mean to a caller of the storage port.

obstore gives the HTTP status only in its text, and repeats requests inside: after a repeat even a clear
refusal leaves open whether an earlier try was stored. Texts are taken apart here and nowhere else, and every
shape that is relied on has a test against a scripted server.
"""

import re
from collections.abc import Collection
from typing import Final

from obstore import exceptions as obs

from tidelog.log.base.errors import (
    InvalidPathError,
    NoCredentialsError,
    ObjectNotFoundError,
    StorageError,
    StoragePermissionError,
    StorageUnavailableError,
)
from tidelog.log.storage.option_table import SCHEMES

# What obstore's calls raise: NotFoundError is Python's FileNotFoundError, some of its wrappers raise OSError.
RAISED = (obs.BaseError, OSError)

_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_REPEATED = re.compile(r"after \d+ retries")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_CONNECTION = re.compile(r"HttpError \{\s*kind: (\w+)")
_TRIES = re.compile(r" in ([\d.]+)(\w+), after (\d+) retries, max_retries: \d+, retry_timeout: \w+")
_SLOW_DOWN = (429, 503)
# 503 of a replicated store (MinIO's codes), of whose nodes too few answer one another: no matter of how much is asked.
_TOO_FEW_NODES: Final = {"SlowDownWrite": "to write", "SlowDownRead": "to read"}
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_TRY_LATER = (408, 409, 412, 425, 429)
# S3 answers 200 to a deletion that it denies, and says so of the key.
_DELETION_DENIED = re.compile(r"DeleteObjects request failed .*\(code: AccessDenied\)", re.DOTALL)
_DENIED = (obs.PermissionDeniedError, obs.UnauthenticatedError)
# Requests to the metadata services of AWS (EC2, ECS, EKS), Google Cloud and Azure, or to their stand-ins.
_ROLE: Final = re.compile(
    r"Error performing (?:PUT|GET) http://(?:169\.254\.|\[fd00:ec2:|metadata[./]|[^ ]*/latest/(?:api/token|meta-data)"
    r"|[^ ]*/computeMetadata/|[^ ]*/metadata/identity/)"
    r"|Error performing token request: Error performing GET http:"
)
_ROLE_STATUS: Final = re.compile(r"non-2xx status code: (\d{3}[^:\n]*)")
_WAYS: Final = {
    "s3": (
        "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; or AWS_PROFILE, which keys in ~/.aws need, also those of"
        " 'default'; or the options lake.s3.access.key.id and lake.s3.secret.access.key. On EC2, ECS or EKS give the"
        " machine a role."
    ),
    "gcs": (
        "Run 'gcloud auth application-default login', or set GOOGLE_APPLICATION_CREDENTIALS to the path of a file of"
        " credentials, or the option lake.gcs.service.account.path. On Google Cloud give the machine a service account."
    ),
    "azure": (
        "Set AZURE_STORAGE_ACCOUNT_KEY, or AZURE_STORAGE_SAS_TOKEN, or AZURE_TENANT_ID, AZURE_CLIENT_ID and"
        " AZURE_CLIENT_SECRET, or the options of the same names (lake.azure.account.access.key ...). On Azure give the"
        " machine a managed identity."
    ),
}


def conflict_is_proven(error: Exception) -> bool:
    """Whether "already exists" shows that an object is there: a 409 of S3 doesn't, a 412 does."""
    return _status(str(error)) == 412


def gave_no_answer(error: Exception) -> bool:
    """Whether the store neither executed nor refused a request, as far as its error tells: another node may."""
    answers = (FileNotFoundError, obs.AlreadyExistsError, obs.PreconditionError, obs.NotModifiedError)
    return not isinstance(error, answers) and _refused("reach", "", error, ()) is None and not is_past_the_end(error)


def is_not_offered(error: Exception) -> bool:
    """Whether the store says that it has no such request (501), whatever it is about."""
    return _status(str(error)) == 501 or _code(str(error)) == "NotImplemented"


def failed_to_read(location: str, error: Exception, secrets: Collection[str]) -> StorageError:
    """An error of a read or a listing, which change nothing."""
    no_bucket = _code(str(error)) in _NO_BUCKET
    if isinstance(error, FileNotFoundError) and not no_bucket:
        return ObjectNotFoundError(f"There is no object {location}. Check the path, or whether it was deleted.")
    if isinstance(error, obs.PreconditionError):
        return StorageError(f"The object {location} was replaced while it was read. Open it again.")
    return _refused("read", location, error, secrets) or _unavailable("read", location, error, secrets)


def failed_or_done(action: str, location: str, error: Exception, secrets: Collection[str]) -> StorageError:
    """An error of a write: unless the first answer was a refusal, nothing proves that nothing was stored."""
    text = str(error)
    refused = None
    # An upload that fails is taken back by obstore; when that fails too, its error hides the upload's.
    hidden = action != "delete" and "Error performing DELETE" in text
    if not hidden and not _REPEATED.search(text):
        refused = _refused(action, location, error, secrets)
    return refused or _unavailable(action, location, error, secrets)


def is_past_the_end(error: Exception) -> bool:
    """Whether a range was refused because the object is not that large."""
    return _status(str(error)) == 416 or "StartTooLarge" in str(error)


def no_object_to_see(location: str) -> StorageUnavailableError:
    """A conditional put met a conflict, and yet no object is there."""
    return StorageUnavailableError(
        f"The store reports a conflict about {location}, but shows no object there: another request for the same "
        "name was under way, and which one wins is open. Look again before you repeat it."
    )


def describe(error: Exception, secrets: Collection[str]) -> str:
    """The error's own words without the server's reply, queries of addresses, and secrets.

    A reply may quote the signed request, an Azure address carries its signature.
    """
    text = str(error)
    words = text.split("\n\nDebug source", 1)[0].strip()
    words = re.sub(r"(non-2xx status code: \d{3}[^:\n]*).*", r"\1", words, flags=re.DOTALL)
    words = _TRIES.sub(lambda m: f", tried {int(m[3]) + 1} times in {float(m[1]):.3g} {m[2]}", words)
    words = re.sub(r"(\w+://)[^/@\s]+@", r"\1", words)
    words = re.sub(r"\?\S*", "", words)
    for secret in secrets:
        words = words.replace(secret, "***")
    details = [d for d in (_code(text), *_CONNECTION.findall(text)[:1]) if d]
    return " ".join(words.split()) + (f" ({', '.join(details)})" if details else "")


def _refused(action: str, location: str, error: Exception, secrets: Collection[str]) -> StorageError | None:
    """The port's error where the store refused the request, None where it may have been executed."""
    text = str(error)
    status = _status(text)
    reason = describe(error, secrets)
    missing = missing_credentials(location, error)
    if missing and status is not None and 400 <= status < 500 and status not in _TRY_LATER:
        return NoCredentialsError(missing)
    if isinstance(error, _DENIED) or status in (401, 403) or _DELETION_DENIED.search(text):
        return StoragePermissionError(
            f"The store denies the attempt to {action} {location}: {reason}. Check the credentials of this process, "
            "and that they may get, put, list and delete below the lake's root."
        )
    if isinstance(error, FileNotFoundError):
        return StorageError(
            f"Could not {action} {location}: {reason}. The bucket or container has to be there already: "
            "create it, or correct the address."
        )
    if isinstance(error, obs.NotSupportedError):
        return StorageError(
            f"Could not {action} {location}: {reason}. A lake needs a store with conditional puts: "
            "switch them on in the store's options, or use another store."
        )
    if isinstance(error, obs.InvalidPathError):
        return InvalidPathError(f"The store takes no object {location}: {reason}. Use another path.")
    if status is not None and 400 <= status < 500 and status not in _TRY_LATER:
        return StorageError(
            f"The store refused to {action} {location}: {reason}. Check the lake's address and the store's options."
        )
    return None


def _unavailable(action: str, location: str, error: Exception, secrets: Collection[str]) -> StorageUnavailableError:
    missing = missing_credentials(location, error)
    if missing:  # or a role's service that is away for a while
        return StorageUnavailableError(missing)
    open_end = "" if action == "read" else " A write may or may not have happened: look before you repeat it."
    lacking = _TOO_FEW_NODES.get(_code(str(error)) or "")
    if lacking:
        advice = f"Too few of the store's nodes are there {lacking}: start those that are gone, or try again later."
    elif _status(str(error)) in _SLOW_DOWN:
        advice = "The store wants fewer requests: send larger batches from fewer writers, or try again later."
    else:
        advice = "Check that the store can be reached, or try again later."
    return StorageUnavailableError(
        f"No clear answer to an attempt to {action} {location}: {describe(error, secrets)}.{open_end} {advice} How"
        " often and how long a request is repeated say lake.store.retries and lake.store.retry.timeout.ms."
    )


def _status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1]) if found else None


def _code(text: str) -> str | None:
    found = _CODE.search(text)
    return found[1] if found else None


def missing_credentials(location: str, error: Exception) -> str | None:
    """That there are no credentials for the store of `location`, and where to put some; None for another error.

    Where no option names any, the client asks the machine's own: those of its role, from a metadata service of the
    cloud at a fixed address. On any other machine that fails, with a message about this service.
    """
    text = str(error)
    if not _ROLE.search(text):
        return None
    scheme, _, path = location.partition("://")
    store = next((name for name, schemes in SCHEMES.items() if scheme in schemes), "s3")
    status = _ROLE_STATUS.search(text)
    said = f"answers {status[1].strip()}" if status else "gives no answer"
    return (
        f"There are no credentials for {scheme}://{path.partition('/')[0]}: no option and no variable of the"
        " environment names any, and the machine has no role of its own (the cloud's metadata service"
        f" {said}). {_WAYS[store]}"
    )

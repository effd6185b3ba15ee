"""Telling that a store has no credentials to use, out of what its client says then.

Where no option names any, the client asks the machine's own: those of its role, from a metadata service of the cloud at
a fixed address. On any other machine that fails, with a message about this service.
"""

import re
from typing import Final

from tidelog.log.storage.option_table import SCHEMES

# Requests to the metadata services of AWS (EC2, ECS, EKS), Google Cloud and Azure, or to their stand-ins.
_ROLE: Final = re.compile(
    r"Error performing (?:PUT|GET) http://(?:169\.254\.|\[fd00:ec2:|metadata[./]|[^ ]*/latest/(?:api/token|meta-data)"
    r"|[^ ]*/computeMetadata/|[^ ]*/metadata/identity/)"
    r"|Error performing token request: Error performing GET http:"
)
_STATUS: Final = re.compile(r"non-2xx status code: (\d{3}[^:\n]*)")
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


def missing_credentials(location: str, error: Exception) -> str | None:
    """That there are no credentials for the store of `location`, and where to put some; None for another error."""
    text = str(error)
    if not _ROLE.search(text):
        return None
    scheme, _, path = location.partition("://")
    store = next((name for name, schemes in SCHEMES.items() if scheme in schemes), "s3")
    status = _STATUS.search(text)
    said = f"answers {status[1].strip()}" if status else "gives no answer"
    return (
        f"There are no credentials for {scheme}://{path.partition('/')[0]}: no option and no variable of the"
        " environment names any, and the machine has no role of its own (the cloud's metadata service"
        f" {said}). {_WAYS[store]}"
    )

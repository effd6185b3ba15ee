"""`tidelog forget`: the records of given keys leave topics, and storage."""

import typer

from tidelog.commands.forget_options import (
    ForgetDryRunOption,
    ForgetTopicsOption,
    KeyEncoding,
    KeyEncodingOption,
    KeyFileOption,
    KeysOption,
    WaitOption,
    keys_of,
)
from tidelog.commands.options import DebugOption, FormatOption, LakeOption, StoreOption, session


def forget(
    context: typer.Context,
    topics: ForgetTopicsOption,
    keys: KeysOption = None,
    key_file: KeyFileOption = None,
    key_encoding: KeyEncodingOption = KeyEncoding.TEXT,
    dry_run: ForgetDryRunOption = False,
    wait: WaitOption = False,
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """Remove every record of given keys from topics, and their bytes from storage; other offsets stay as they are.

    Says which files went, and which still wait: versions that time travel reaches name them, or a running job needs
    them. Then the exit code is 4, until this or 'tidelog maintain' has deleted them. Runs while others write.
    """
    call = session(context, lake, output, debug, store)
    sought = keys_of(keys, key_file, key_encoding)
    with call.open_lake() as opened:
        # Arrow and the log: heavy, and not needed for --help.
        from tidelog.commands.forget_run import forget_keys

        forget_keys(call, opened, topics, sought, dry_run=dry_run, wait=wait)

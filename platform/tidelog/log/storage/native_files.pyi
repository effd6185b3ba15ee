"""Files of a local disk, created and synced in native code.

Paths are absolute and encoded as the operating system has them. No call holds the interpreter meanwhile. Errors are
answers, never exceptions: numbers of `errno`.
"""

SOURCE: str
"""The SHA-256 of the source that this was built from, in hex."""

def begin(folder: bytes, device: int, data: bytes | memoryview) -> int:
    """A descriptor of an unnamed file in a folder, with its content; below 0, an error's number, and no file.

    EXDEV where the folder is on another device than the one of this number.
    """

def create(folder: bytes, device: int, location: bytes, data: bytes | memoryview) -> int:
    """Create a file with its content at a location in a folder: 0, or an error's number, and there is no new file."""

def finish(fd: int, location: bytes, folder: bytes) -> tuple[int, int]:
    """Sync an unnamed file, give it its name, and sync that: (0, 0), or (the step that failed, an error's number).

    Steps: 1: the name was taken before, and nothing was done; 2: the sync; 3: the name; 4: the sync of the name, which
    the file has then.
    """

def sync(locations: list[bytes], files: int) -> list[int]:
    """Sync locations, first `files` files, then folders: 1 for each, 0 where there is none, below 0 an error's number.

    What has a file's name and is none (a pipe, a folder) counts as no file.
    """

"""How much an LZ4 frame unpacks to, which it need not say itself. Nothing is unpacked."""

SOURCE: str
"""The SHA-256 of the source that this was built from, in hex."""

def unpacked_size(packed: bytes | memoryview, most: int) -> int:
    """The bytes of a frame that is all of `packed`; -1 for any other, with a dictionary, and for more than `most`.

    It is right of a frame that unpacks at all; its checksums and offsets, which say whether it does, are not looked at.
    """

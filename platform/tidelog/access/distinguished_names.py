"""Distinguished names of certificates as Kafka's brokers write them: `X500Principal.getName()` of Java, RFC 2253."""

from typing import Final

from cryptography.x509 import Name, NameAttribute, load_der_x509_certificate

# The attribute types that RFC 2253 names; all others are written as numbers.
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# RFC 2253 names them but for = and #, which Java escapes everywhere, too.
_ESCAPED: Final = str.maketrans({character: f"\\{character}" for character in ',=+<>#;"\\'} | {"\0": "\\00"})


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER, the most special part first: "CN=ann,OU=sales,O=Example".

    Raises ValueError for what is no certificate.
    """
    return rfc_2253(load_der_x509_certificate(certificate).subject)


def rfc_2253(name: Name) -> str:
    """The text of a distinguished name."""
    return ",".join("+".join(map(_attribute, rdn)) for rdn in reversed(name.rdns))


def _attribute(attribute: NameAttribute[str | bytes]) -> str:
    number, value = attribute.oid.dotted_string, attribute.value
    keyword = _KEYWORDS.get(number)
    if keyword is None or isinstance(value, bytes):
        return f"{keyword or number}=#{_encoded_value(attribute).hex()}"
    text = value.translate(_ESCAPED)
    bare = text.strip(" \r")
    start = len(text) - len(text.lstrip(" \r")) if bare else len(text)
    end = start + len(bare)
    return f"{keyword}={_spaces(text[:start])}{bare}{_spaces(text[end:])}"


def _spaces(text: str) -> str:
    return "".join(f"\\{space}" for space in text)


def _encoded_value(attribute: NameAttribute[str | bytes]) -> bytes:
    """The value in DER: what follows the type, in a name of this attribute alone."""
    inside = Name([attribute]).public_bytes()
    for _ in range(3):  # the name, its only set, the attribute
        inside = inside[_header(inside) :]
    return inside[_header(inside) + inside[1] :]  # a type is shorter than 128 bytes


def _header(der: bytes) -> int:
    """How long the tag and the length of a value in DER are."""
    return 2 + (der[1] & 0x7F if der[1] & 0x80 else 0)

"""Converters between Connect's data and the bytes of records, by Connect's names for them."""

"""Fixtures of every layer."""

from support.versitygw import s3

__all__ = ["s3"]

"""Typed topics: values as columns of the table."""

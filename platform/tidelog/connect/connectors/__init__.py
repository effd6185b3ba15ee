"""Connectors that need no program beside the worker, and the one that supervises Spark's."""

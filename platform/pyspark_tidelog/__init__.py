"""`format("tidelog")` for Spark, which looks for packages named `pyspark_...` and their `DefaultSource`."""

from pyspark_tidelog.data_source import DefaultSource

__all__ = ["DefaultSource"]

"""Spark is installed, or importing `tidelog.spark` says how to get it. The package imports this module first."""

from tidelog.log.base.extras import require

require("spark", "pyspark", "delta")

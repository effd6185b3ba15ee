"""Connectors that need Spark: one supervised spark-submit each."""

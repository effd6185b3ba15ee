"""Delta tables as sinks, without Spark."""

"""tidelog.jobs.on_spark: maintenance as Spark tasks."""

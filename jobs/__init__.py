"""What an operator submits to Spark: each module is also a file for spark-submit."""

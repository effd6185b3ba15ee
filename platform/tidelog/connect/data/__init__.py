"""Connect's data: schemas, records and their headers (`org.apache.kafka.connect.data` and its neighbours)."""

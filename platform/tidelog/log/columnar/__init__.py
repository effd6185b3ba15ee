"""tidelog.log.columnar: payloads of Avro, JSON and Protobuf as Arrow columns, and back."""

"""AdminClient and its types, in the shape of `confluent_kafka.admin`. Users import them from `tidelog.admin`."""

"""tidelog.doctor: whether a lake is well, and what to do where it is not."""

"""tidelog.cuts: points in time of a whole lake, and the table `__cuts` that names them (docs/format.md)."""

"""The wheel with its extra `spark` in an empty environment: a first program works there."""

from support.distributions import Environment, distributions


def test_a_first_program_with_spark(tmp_path):
    environment = Environment(tmp_path / "venv", distributions(tmp_path / "dist")["wheel"], "spark")
    printed = environment.python("""
import tidelog
lake = tidelog.Lake("lake")
spark = tidelog.spark.session("first", master="local[1]")
rows = spark.createDataFrame([("ann", "tea"), ("bob", "milk")], "key string, value string")
rows.write.format("tidelog").option("lake", "lake").option("topic", "orders").mode("append").save()
records = spark.read.format("tidelog").option("lake", "lake").option("subscribe", "orders").load()
print(sorted(bytes(row.value) for row in records.collect()))
print(tidelog.spark.read_topic(spark, lake, "orders").count())
spark.stop()
""")
    assert printed.splitlines()[-2:] == ["[b'milk', b'tea']", "2"]

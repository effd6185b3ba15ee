"""Jars, as far as no JVM is needed: what is asked for, and how a session without Delta is refused."""

from unittest.mock import MagicMock

import pytest

from tidelog.log.base.errors import MissingJarsError
from tidelog.spark.jars import delta_package, require_delta


def test_delta_is_asked_for_as_deltas_own_helper_does() -> None:
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    by_delta = configure_spark_with_delta_pip(SparkSession.Builder())._options["spark.jars.packages"]
    assert delta_package() == by_delta


def test_a_session_without_delta_is_told_what_to_do() -> None:
    jvm = MagicMock()
    jvm.org.apache.spark.util.Utils.classIsLoadable.return_value = False
    with pytest.raises(MissingJarsError) as refused:
        require_delta(jvm)
    assert "spark-submit --packages io.delta:" in str(refused.value)
    assert "tidelog.spark.session()" in str(refused.value)

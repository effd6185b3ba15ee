"""Maintenance of a lake by Airflow 3: copy this file into its folder of DAGs.

Airflow's variables say where: `tidelog_lake` is the lake's address, `tidelog_home` where tidelog is installed
(/opt/tidelog unless it is set). With `tidelog_spark`, options of spark-submit such as `--master spark://head:7077`, the
jobs run on Spark. What the store needs is in the environment of Airflow's workers.
"""

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

HOME = "{{ var.value.get('tidelog_home', '/opt/tidelog') }}"
ON_SPARK = "{% if var.value.get('tidelog_spark', '') %}"
SUBMIT = f"{HOME}/bin/spark-submit {{{{ var.value.get('tidelog_spark', '') }}}} {HOME}/jobs"

COMMANDS = {
    "maintain": (f"{HOME}/bin/tidelog maintain --format json", f"{SUBMIT}/maintain.py --format json"),
    "compact": (f"{HOME}/bin/tidelog maintain --format json --only compact", f"{SUBMIT}/compaction.py --format json"),
}


def job(name: str, schedule: str, limit: timedelta) -> DAG:
    """A DAG of one task. Airflow starts no run while the one before goes on, and ends one that takes longer than
    `limit`; one that fails is tried twice more. The report of a run without Spark, a line of JSON, is the task's XCom.
    """
    plain, on_spark = COMMANDS[name]
    with DAG(
        f"tidelog_{name}",
        schedule=schedule,
        start_date=datetime(2026, 1, 1),
        catchup=False,
        max_active_runs=1,
        default_args={"retries": 2, "retry_delay": timedelta(minutes=1), "execution_timeout": limit},
        tags=["tidelog"],
    ) as dag:
        BashOperator(
            task_id=name,
            bash_command=f"{ON_SPARK}{on_spark}{{% else %}}{plain}{{% endif %}}",
            env={
                "TIDELOG_LAKE": "{{ var.value.tidelog_lake }}",
                "PYSPARK_PYTHON": f"{HOME}/bin/python",
                "PYSPARK_DRIVER_PYTHON": f"{HOME}/bin/python",
            },
            append_env=True,
        )
    return dag


maintain = job("maintain", "*/15 * * * *", timedelta(hours=1))
compact = job("compact", "30 2 * * *", timedelta(hours=6))

"""A PySpark script of one's own that scales itself: two lines are Penstock's, the rest is plain Spark.

Run it with `.venv/bin/python examples/autoscale_my_query.py`. It starts a small cluster on this machine, so that it
runs anywhere; with a cluster of your own, use its master URL and leave the `with` block out.
"""

import tempfile
import time
from pathlib import Path

from pyspark.sql import functions as F  # noqa: N812 - everybody calls it F

import penstock.spark

SECONDS = 120

with (
    tempfile.TemporaryDirectory() as directory,
    penstock.spark.cluster(Path(directory), max_workers=4) as cluster,
):
    # On your own cluster: SparkSession.builder.master(...).config(map=penstock.spark.conf(workers=1)).getOrCreate()
    spark = cluster.session("my query", workers=1)

    events = spark.readStream.format("rate").option("rowsPerSecond", 30_000).option("numPartitions", 4).load()
    observed = penstock.spark.observe_latency(events)  # optional: p95 event latency from the records' own timestamps
    counts = observed.groupBy((F.col("value") % 1000).alias("key")).agg(F.count("*"), F.avg(F.sqrt("value")))
    query = (
        counts.writeStream.outputMode("update")
        .format("noop")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(processingTime="2 seconds")
        .start()
    )

    handle = penstock.spark.autoscale(query, policy="hpa", min_workers=1, max_workers=4, cluster=cluster, interval=10)
    print(f"every step is explained by: penstock explain {handle.journal}")
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and query.isActive:
        time.sleep(10)
        print(handle.status())

    handle.stop()  # the query would run on
    query.stop()
    spark.stop()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One peer, one run:  python peers.py PEER CACHE TABLE

Turns all rows of the table into one JSON object a row, written to /dev/null, on two threads, and prints
`RESULT {"rows": n, "inner_s": s}` on stderr. The time leaves out the interpreter's start and imports.
"""
import json
import os
import sys
import time

THREADS = 2
peer, cache, name = sys.argv[1:4]
os.environ["POLARS_MAX_THREADS"] = str(THREADS)
os.environ["PYTHONWARNINGS"] = "ignore"
with open(os.path.join(cache, "paths.json")) as f:
    TABLE = json.load(f)[name]
FILES, META = TABLE["files"], TABLE["metadata"]
OUT = "/dev/null"


def duckdb(*settings):
    import duckdb
    start = time.perf_counter()
    c = duckdb.connect(config={"threads": THREADS})
    c.execute("SET TimeZone='UTC'")
    for s in settings:
        c.execute(s)
    files = ",".join("'" + f.replace("'", "''") + "'" for f in FILES)
    # USE_TMP_FILE false: a temporary file would be renamed over /dev/null.
    c.execute(f"COPY (SELECT * FROM read_parquet([{files}])) TO '{OUT}' (FORMAT json, USE_TMP_FILE false)")
    return start


def polars():
    import polars
    start = time.perf_counter()
    polars.scan_parquet(FILES).sink_ndjson(OUT)
    return start


def chdb():
    import chdb
    start = time.perf_counter()
    folder = os.path.dirname(FILES[0])
    os.chdir(os.path.dirname(folder))  # it reads below the working folder only
    chdb.query(f"INSERT INTO FUNCTION file('{OUT}', JSONEachRow) SELECT * FROM file('{folder}/*.parquet', Parquet) "
               f"SETTINGS max_threads={THREADS}, max_parsing_threads={THREADS}, engine_file_truncate_on_insert=1, "
               "output_format_json_quote_64bit_integers=0, date_time_output_format='iso'")
    return start


def pyiceberg_orjson():
    import orjson
    import pyarrow
    from pyiceberg.table import StaticTable
    pyarrow.set_cpu_count(THREADS)
    pyarrow.set_io_thread_count(THREADS)
    start = time.perf_counter()
    with open(OUT, "wb", buffering=1 << 20) as out:
        for batch in StaticTable.from_metadata(META).scan().to_arrow_batch_reader():
            for row in batch.to_pylist():
                out.write(orjson.dumps(row, default=str, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z))
    return start


def spark_stream():
    """Structured Streaming, everything there is in one go, into a sink that drops the JSON strings."""
    import glob
    import shutil
    import tempfile
    from pyspark.sql import SparkSession, functions
    spark = os.path.join(cache, "spark")
    # The Hadoop catalog wants two more files beside the table's metadata.
    shutil.copy(META, os.path.dirname(META) + "/v1.metadata.json")
    with open(os.path.dirname(META) + "/version-hint.text", "w") as f:
        f.write("1")
    session = (SparkSession.builder.master(f"local[{THREADS}]").appName("bench")
               .config("spark.jars", ",".join(glob.glob(spark + "/*.jar"))).config("spark.ui.enabled", "false")
               .config("spark.driver.memory", "4g").config("spark.sql.session.timeZone", "UTC")
               .config("spark.sql.catalog.h", "org.apache.iceberg.spark.SparkCatalog").config("spark.sql.catalog.h.type", "hadoop")
               .config("spark.sql.catalog.h.warehouse", f"file://{cache}/wh").getOrCreate())
    session.sparkContext.setLogLevel("ERROR")
    start = time.perf_counter()
    # The tables are smaller than the default split size, which would give one task.
    rows = session.readStream.format("iceberg").option("split-size", str(16 << 20)).load(f"h.b.{name}")
    form = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}
    lines = rows.select(functions.to_json(functions.struct("*"), form).alias("value"))
    with tempfile.TemporaryDirectory() as progress:
        query = (lines.writeStream.foreachBatch(lambda batch, _: batch.write.format("noop").mode("append").save())
                 .option("checkpointLocation", progress).trigger(availableNow=True).start())
        query.awaitTermination()
        if query.exception():
            raise query.exception()
    seen = sum(p["numInputRows"] for p in query.recentProgress)
    if seen != TABLE["rows"]:
        raise SystemExit(f"Spark read {seen} rows")
    taken = time.perf_counter() - start
    extra.update(child(session.sparkContext._gateway.proc.pid))
    session.stop()
    return time.perf_counter() - taken


def child(pid):
    """What the JVM took, which is not waited for."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(") ", 1)[1].split()
    with open(f"/proc/{pid}/status") as f:
        peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    return {"child_cpu_s": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), "child_peak_mib": peak / 1024}


extra = {}
PEERS = {
    "duckdb": duckdb,
    "duckdb-unordered": lambda: duckdb("SET preserve_insertion_order=false"),
    "polars": polars,
    "chdb": chdb,
    "pyiceberg-orjson": pyiceberg_orjson,
    "spark-stream": spark_stream,
}
started = PEERS[peer]()
print("RESULT", json.dumps({"rows": TABLE["rows"], "inner_s": time.perf_counter() - started, **extra}), file=sys.stderr)

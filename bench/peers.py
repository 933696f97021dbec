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


PEERS = {
    "duckdb": duckdb,
    "duckdb-unordered": lambda: duckdb("SET preserve_insertion_order=false"),
    "polars": polars,
    "chdb": chdb,
    "pyiceberg-orjson": pyiceberg_orjson,
}
started = PEERS[peer]()
print("RESULT", json.dumps({"rows": TABLE["rows"], "inner_s": time.perf_counter() - started}), file=sys.stderr)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the benchmark's tables with PyIceberg:  python make_tables.py CACHE

events10: 2,000,000 rows of 10 mixed columns in 8 snapshots of one file each. events10-one: the same rows in one file of 16
row groups. flat5: 5,000,000 rows of 5 plain columns in 5. zstd Parquet. The data are the same each time (a seed a snapshot);
snapshot ids and UUIDs are not. CACHE/paths.json names the files: {table: {"metadata", "files", "rows", "parquet_bytes"}};
tables that it names already are left alone.
"""
import json
import os
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import (BooleanType, DecimalType, DoubleType, IntegerType, ListType, LongType,
                             NestedField, StringType, StructType, TimestampType, TimestamptzType)

T0 = 1_700_000_000_000_000  # us
ALNUM = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", dtype="S1")
WORDS = ("the quick brown fox jumps over a lazy dog while seven wizards quietly "
         "mix \"bold\" jugs of liquid oxygen near café Zürich").split()
KINDS = ["click", "view", "purchase", "refund", "login", "logout", "search", "share"]


def strings(rng, n, width):
    b = ALNUM[rng.integers(0, 36, n * width)].tobytes()
    off = np.arange(0, (n + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(n, pa.py_buffer(off), pa.py_buffer(b))


def var_strings(rng, n, lo, hi):
    lens = rng.integers(lo, hi + 1, n)
    off = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(lens, out=off[1:])
    b = ALNUM[rng.integers(0, 36, int(off[-1]))].tobytes()
    return pa.StringArray.from_buffers(n, pa.py_buffer(off), pa.py_buffer(b))


def notes(rng, n):
    # pool of 5000 phrases of ~34 chars + 6 random chars => ~40 chars, all different
    pool = []
    for _ in range(5000):
        s = ""
        while len(s) < 32:
            s += WORDS[rng.integers(0, len(WORDS))] + " "
        pool.append(s[:34].ljust(34, "."))
    base = pa.array(pool).take(pa.array(rng.integers(0, 5000, n)))
    a = pc.binary_join_element_wise(base, strings(rng, n, 5), " ")
    return pc.if_else(pa.array(rng.random(n) < 0.10), pa.scalar(None, pa.string()), a)


def decimals(rng, n):
    v = rng.integers(0, 1_000_000, n).astype(np.int64)  # unscaled cents
    raw = np.zeros((n, 2), dtype=np.int64)
    raw[:, 0] = v
    return pa.Array.from_buffers(pa.decimal128(12, 2), n, [None, pa.py_buffer(raw.tobytes())])


def events(seed, start, n):
    rng = np.random.default_rng(seed)
    tags_len = rng.integers(0, 4, n)
    off = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(tags_len, out=off[1:])
    m = int(off[-1])
    tagpool = pa.array([f"tag{i:02d}" for i in range(50)])
    tags = pa.ListArray.from_arrays(pa.array(off), tagpool.take(pa.array(rng.integers(0, 50, m))))
    props = pa.StructArray.from_arrays(
        [pa.array(rng.integers(0, 100000, n).astype(np.int32)), strings(rng, n, 8)], ["a", "b"])
    ts = T0 + (start + np.arange(n)) * 1000 + rng.integers(0, 1000, n)
    return pa.table({
        "id": pa.array(np.arange(start, start + n, dtype=np.int64)),
        "ts": pa.array(ts.astype("datetime64[us]")).cast(pa.timestamp("us", tz="UTC")),
        "user": var_strings(rng, n, 10, 14),
        "kind": pa.array(KINDS).take(pa.array(rng.integers(0, len(KINDS), n))),
        "amount": decimals(rng, n),
        "price": pa.array(np.round(rng.random(n) * 1000, 6)),
        "flag": pa.array(rng.random(n) < 0.5),
        "note": notes(rng, n),
        "tags": tags,
        "props": props,
    })


def flat(seed, start, n):
    rng = np.random.default_rng(seed)
    ts = T0 + (start + np.arange(n)) * 1000
    return pa.table({
        "id": pa.array(np.arange(start, start + n, dtype=np.int64)),
        "v": pa.array(rng.integers(0, 1 << 40, n)),
        "x": pa.array(rng.random(n)),
        "s": strings(rng, n, 16),
        "ts": pa.array(ts.astype("datetime64[us]")),
    })


F = NestedField
EVENTS = Schema(
    F(1, "id", LongType()), F(2, "ts", TimestamptzType()), F(3, "user", StringType()), F(4, "kind", StringType()),
    F(5, "amount", DecimalType(12, 2)), F(6, "price", DoubleType()), F(7, "flag", BooleanType()),
    F(8, "note", StringType()),
    F(9, "tags", ListType(11, StringType(), False)),
    F(10, "props", StructType(F(12, "a", IntegerType()), F(13, "b", StringType()))))
FLAT = Schema(F(1, "id", LongType()), F(2, "v", LongType()), F(3, "x", DoubleType()), F(4, "s", StringType()),
              F(5, "ts", TimestampType()))


def linked(cat, w, name, source, size, props):
    """A table of so many bytes that takes none: its files are hard links to another table's."""
    if cat.table_exists(f"b.{name}"):
        cat.drop_table(f"b.{name}")
    t = cat.create_table(f"b.{name}", FLAT, location=f"file://{w}/wh/b/{name}", properties=props)
    os.makedirs(f"{w}/wh/b/{name}/data", exist_ok=True)
    files = []
    while sum(map(os.path.getsize, files)) < size:
        files.append(f"{w}/wh/b/{name}/data/{len(files):05d}.parquet")
        if not os.path.exists(files[-1]):
            os.link(source["files"][len(files) % len(source["files"])], files[-1])
    t.add_files(["file://" + f for f in files])
    rows = source["rows"] // len(source["files"]) * len(files)
    return {"metadata": t.metadata_location.removeprefix("file://"), "files": files, "rows": rows,
            "parquet_bytes": sum(map(os.path.getsize, files))}


def parts(make, count, rows):
    return (make(1000 + i, i * rows, rows) for i in range(count))


def written(cat, w, name, schema, appended, props):
    """A table to which parts are appended, a snapshot and a file each."""
    if cat.table_exists(f"b.{name}"):
        cat.drop_table(f"b.{name}")
    t = cat.create_table(f"b.{name}", schema, location=f"file://{w}/wh/b/{name}", properties=props)
    t0, rows = time.time(), 0
    for part in appended:
        t.append(part.cast(schema.as_arrow()))
        rows += part.num_rows
    files = [f.file.file_path.removeprefix("file://") for f in t.scan().plan_files()]
    files.sort(key=lambda p: os.path.getmtime(p))
    size = sum(map(os.path.getsize, files))
    print(name, rows, "rows", len(files), "files", size, "bytes", round(time.time() - t0, 1), "s")
    return {"metadata": t.metadata_location.removeprefix("file://"), "files": files, "rows": rows, "parquet_bytes": size}


def main():
    w = os.path.abspath(sys.argv[1])
    os.makedirs(w + "/wh", exist_ok=True)
    cat = SqlCatalog("c", uri=f"sqlite:///{w}/cat.db", warehouse=f"file://{w}/wh")
    cat.create_namespace_if_not_exists("b")
    props = {"write.parquet.compression-codec": "zstd"}
    one = props | {"write.parquet.row-group-limit": "125000", "write.target-file-size-bytes": str(1 << 31)}
    out = json.load(open(w + "/paths.json")) if os.path.exists(w + "/paths.json") else {}
    for name, table in (
            ("events10", lambda name: written(cat, w, name, EVENTS, parts(events, 8, 250_000), props)),
            ("events10-one", lambda name: written(cat, w, name, EVENTS, [pa.concat_tables(parts(events, 8, 250_000))], one)),
            ("flat5", lambda name: written(cat, w, name, FLAT, parts(flat, 5, 1_000_000), props)),
            ("flat-1gb", lambda name: linked(cat, w, name, out["flat5"], 1e9, props)),
            ("flat-5gb", lambda name: linked(cat, w, name, out["flat5"], 5e9, props))):
        if name not in out:
            out[name] = table(name)
    json.dump(out, open(w + "/paths.json", "w"), indent=1)


main()

# SPDX-License-Identifier: Apache-2.0
"""Makes ../testdata/python: tables that Daft, Polars and PyIceberg wrote through Nessie's REST catalog, as one archive of the
objects of their bucket, and cases.json with the rows that Daft reads after each step (PyIceberg 0.12 reads a NULL list of structs as an empty one).

    pip install daft==0.7.26 polars==2.1.0 'pyiceberg[pyarrow]==0.12.0' pyiceberg-core boto3
    export NESSIE=http://127.0.0.1:19120 S3=http://127.0.0.1:9000    # bucket "bucket", key k, secret s
    python tables.py && python pack.py ../testdata/python
"""

import datetime as dt
import decimal
import json
import math
import os
import pathlib
import traceback
import uuid

import daft
import polars as pl
import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, HourTransform, IdentityTransform, MonthTransform, TruncateTransform, YearTransform
from pyiceberg.types import *

NESSIE, S3 = os.environ["NESSIE"], os.environ["S3"]
OUT = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "python"
os.environ |= {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": S3, "DAFT_ANALYTICS_ENABLED": "0", "DO_NOT_TRACK": "true"}
catalog = RestCatalog("n", uri=NESSIE + "/iceberg", **{"s3.endpoint": S3, "s3.access-key-id": "k", "s3.secret-access-key": "s", "s3.region": "us-east-1", "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO", "header.X-Iceberg-Access-Delegation": ""})
catalog.create_namespace_if_not_exists("writers")
io_config = daft.io.IOConfig(s3=daft.io.S3Config(endpoint_url=S3, key_id="k", access_key="s", region_name="us-east-1", force_virtual_addressing=False))
cases, roots = [], []
D = decimal.Decimal


def value(v, t):
    if v is None:
        return None
    if isinstance(t, StructType):
        return {f.name: value(v[f.name], f.field_type) for f in t.fields}
    if isinstance(t, ListType):
        return [value(e, t.element_type) for e in v]
    if isinstance(t, MapType):
        pairs = [(value(k, t.key_type), value(x, t.value_type)) for k, x in v]
        return dict(pairs) if isinstance(t.key_type, StringType) else [{"key": k, "value": x} for k, x in pairs]
    if isinstance(t, (TimestampType, TimestamptzType)):
        return v.strftime("%Y-%m-%dT%H:%M:%S.%f").rjust(26, "0") + ("+00:00" if isinstance(t, TimestamptzType) else "")
    if isinstance(t, TimeType):
        return v.strftime("%H:%M:%S.%f")
    if isinstance(t, (BinaryType, FixedType)):
        return bytes(v).hex()
    if isinstance(t, UUIDType):
        return str(uuid.UUID(bytes=v) if isinstance(v, bytes) else v)
    if isinstance(t, (DateType, DecimalType)):
        return str(v)
    if isinstance(v, float):
        return "NaN" if math.isnan(v) else ("Infinity" if v > 0 else "-Infinity") if math.isinf(v) else v
    return v


class Written:
    def __init__(self, name, schema, spec=PartitionSpec(), **properties):
        self.name, self.steps = name, []
        if catalog.table_exists(("writers", name)):
            catalog.drop_table(("writers", name))
        self.t = catalog.create_table(("writers", name), schema, partition_spec=spec, properties={k.replace("_", "."): v for k, v in properties.items()})

    def step(self, what, do):
        do(self.t)
        self.t = catalog.load_table(("writers", self.name))
        rows = [value(row, self.t.schema().as_struct()) for row in daft.read_iceberg(self.t, io_config=io_config).to_arrow().to_pylist()]
        self.steps.append({"statement": what, "metadata": self.t.metadata_location, "rows": rows})
        return self

    def done(self):
        cases.append({"name": self.name, "steps": self.steps})
        roots.append(self.t.location())
        print("made", self.name, len(self.steps))


def make(f):
    if os.environ.get("ONLY", f.__name__) != f.__name__:
        return
    try:
        f()
    except Exception:
        print("FAILED", f.__name__)
        traceback.print_exc()


F = NestedField
TYPED = Schema(
    F(1, "id", LongType(), required=False), F(2, "b", BooleanType()), F(3, "i", IntegerType()), F(4, "f", FloatType()), F(5, "d", DoubleType()), F(6, "d9", DecimalType(9, 2)),
    F(7, "d18", DecimalType(18, 3)), F(8, "d38", DecimalType(38, 10)), F(9, "s", StringType()), F(10, "y", BinaryType()), F(11, "dt", DateType()),
    F(12, "ts", TimestampType()), F(13, "tz", TimestamptzType()), F(14, "a", ListType(15, StructType(F(16, "p", IntegerType()), F(17, "q", ListType(18, StringType(), False))), False)),
    F(19, "st", StructType(F(20, "u", StructType(F(21, "v", TimestampType()))), F(22, "z", StringType()))))
MORE = Schema(*TYPED.fields, F(23, "tm", TimeType()), F(24, "m", MapType(25, StringType(), 26, DecimalType(20, 2), False)), F(27, "mi", MapType(28, IntegerType(), 29, StringType(), False)), F(30, "x", FixedType(3)), F(31, "u", UUIDType()))


def row(i, more=False):
    if i % 5 == 3:
        return {"id": i}
    t = dt.datetime(1969, 12, 31, 23, 59, 59, 999999) + dt.timedelta(seconds=i * 12345678, microseconds=i)
    out = {"id": i, "b": i % 2 == 0, "i": -i, "f": i / 4, "d": [float("nan"), float("inf"), -0.0, 0.1][i % 4], "d9": D(f"-1234567.8{i % 10}"), "d18": D(f"123456789012345.67{i % 10}"),
           "d38": D(f"-1234567890123456789012345678.012345678{i % 10}"), "s": ["", 's"é日\n'][i % 2] + str(i), "y": bytes([0, 255, i]), "dt": dt.date(1969, 12, 25) + dt.timedelta(days=i * 40), "ts": t,
           "tz": t.replace(tzinfo=dt.timezone.utc), "a": [] if i % 4 == 1 else [{"p": i, "q": ["x", None]}, None, {"p": None, "q": None}], "st": {"u": None if i % 4 == 2 else {"v": t}, "z": f"z{i}"}}
    if more:
        out |= {"tm": dt.time(i % 24, 59, 58, 123456), "m": [(f"k{i}", D(f"-{i}.50")), ("n", None)], "mi": [(i, "v"), (i + 1, None)], "x": bytes([i, 128, 1]), "u": uuid.UUID(int=i << 64 | i).bytes}
    return out


def arrow(t, rows):
    return pa.Table.from_pylist(rows, t.schema().as_arrow())


def frame(t, rows):
    return daft.from_arrow(arrow(t, rows))


@make
def daft_typed():
    w = Written("daft_typed", TYPED)
    w.step("append", lambda t: frame(t, [row(i) for i in range(12)]).write_iceberg(t, mode="append", io_config=io_config))
    w.step("append", lambda t: frame(t, [row(i) for i in range(12, 20)]).into_partitions(3).write_iceberg(t, mode="append", io_config=io_config))
    w.step("overwrite", lambda t: frame(t, [row(i) for i in range(3)]).write_iceberg(t, mode="overwrite", io_config=io_config))
    w.done()


@make
def daft_more():
    w = Written("daft_more", MORE)
    w.step("append", lambda t: frame(t, [row(i, True) for i in range(12)]).write_iceberg(t, mode="append", io_config=io_config))
    w.done()


@make
def daft_parted():
    spec = PartitionSpec(PartitionField(9, 1000, IdentityTransform(), "s"), PartitionField(11, 1001, YearTransform(), "dt_year"), PartitionField(12, 1002, DayTransform(), "ts_day"), PartitionField(13, 1003, HourTransform(), "tz_hour"),
                         PartitionField(1, 1004, BucketTransform(3), "id_bucket"), PartitionField(3, 1005, TruncateTransform(4), "i_trunc"))
    w = Written("daft_parted", TYPED, spec)
    w.step("append", lambda t: frame(t, [row(i) for i in range(8)]).write_iceberg(t, mode="append", io_config=io_config))
    w.step("append", lambda t: frame(t, [row(i) for i in range(5, 10)]).write_iceberg(t, mode="append", io_config=io_config))
    w.step("delete", lambda t: t.delete("id = 6"))
    w.done()


@make
def polars_typed():
    w = Written("polars_typed", TYPED)
    w.step("append", lambda t: pl.from_arrow(arrow(t, [row(i) for i in range(12)])).write_iceberg(t, mode="append"))
    w.step("append", lambda t: pl.from_arrow(arrow(t, [row(i) for i in range(12, 20)])).write_iceberg(t, mode="append"))
    w.step("overwrite", lambda t: pl.from_arrow(arrow(t, [row(i) for i in range(3)])).write_iceberg(t, mode="overwrite"))
    w.done()


@make
def polars_sink():
    w = Written("polars_sink", TYPED)
    w.step("append", lambda t: pl.from_arrow(arrow(t, [row(i) for i in range(12)])).lazy().sink_iceberg(t, mode="append"))
    w.step("append", lambda t: pl.from_arrow(arrow(t, [row(i) for i in range(12, 20)])).lazy().sink_iceberg(t, mode="append"))
    w.step("overwrite", lambda t: pl.from_arrow(arrow(t, [row(i) for i in range(3)])).lazy().sink_iceberg(t, mode="overwrite"))
    w.done()


@make
def polars_sink_parted():
    w = Written("polars_sink_parted", TYPED, PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "b"), PartitionField(11, 1001, MonthTransform(), "dt_month")))
    w.step("append", lambda t: pl.from_arrow(arrow(t, [row(i) for i in range(12)])).lazy().sink_iceberg(t, mode="append"))
    w.done()


@make
def pyiceberg_more():
    spec = PartitionSpec(PartitionField(31, 1000, BucketTransform(3), "u_bucket"), PartitionField(8, 1001, TruncateTransform(7), "d38_trunc"), PartitionField(10, 1002, BucketTransform(2), "y_bucket"), PartitionField(23, 1003, IdentityTransform(), "tm"))
    w = Written("pyiceberg_more", MORE, spec)
    w.step("append", lambda t: t.append(arrow(t, [row(i, True) for i in range(12)])))
    w.step("delete", lambda t: t.delete("id in (2, 5, 3)"))
    w.step("overwrite", lambda t: t.overwrite(arrow(t, [row(2, True)]), overwrite_filter="id > 8"))
    w.step("upsert", lambda t: t.upsert(arrow(t, [row(1, True) | {"s": "new"}, row(20, True)]), ["id"]))
    w.done()


@make
def pyiceberg_dynamic():
    s = Schema(F(1, "id", LongType()), F(2, "p", StringType()))
    w = Written("pyiceberg_dynamic", s, PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p")), write_metadata_compression__codec="gzip")
    w.step("append", lambda t: t.append(arrow(t, [{"id": i, "p": ["a", None, "é/="][i % 3]} for i in range(9)])))
    w.step("dynamic overwrite", lambda t: t.dynamic_partition_overwrite(arrow(t, [{"id": 100, "p": None}])))
    w.step("delete", lambda t: t.delete("p = 'a'"))
    w.done()


OUT.mkdir(parents=True, exist_ok=True)
(OUT / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")
(OUT / "roots").write_text("\n".join(roots) + "\n")

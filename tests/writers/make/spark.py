# SPDX-License-Identifier: Apache-2.0
"""Makes ../testdata/spark: tables that Spark wrote through Nessie's catalog, as one archive of the objects of their bucket,
and cases.json with the rows that Spark itself reads after each statement.

    pip install pyspark==4.1.4 boto3 requests    # a Java of at least 17; S3 has no bucket yet
    JARS=iceberg-spark-runtime-4.1_2.13-1.11.0.jar,iceberg-aws-bundle-1.11.0.jar
    JARS=$JARS NESSIE=http://127.0.0.1:19120 S3=http://127.0.0.1:9000 python spark.py    # key k, secret s
"""

import io
import json
import os
import pathlib
import shutil
import tarfile

import boto3
import requests
from pyspark.sql import SparkSession

NESSIE, S3 = os.environ["NESSIE"], os.environ["S3"]
OUT = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "spark"
os.environ |= {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}
s3 = boto3.client("s3", endpoint_url=S3, region_name="us-east-1")
s3.create_bucket(Bucket="bucket")
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars", os.environ["JARS"])
# The cache keeps equality deletes under the types that their columns had when they were first read.
builder = builder.config("spark.sql.iceberg.executor-cache.enabled", "false")
builder = builder.config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
for key, value in {
    "": "org.apache.iceberg.spark.SparkCatalog", ".catalog-impl": "org.apache.iceberg.nessie.NessieCatalog",
    ".uri": NESSIE + "/api/v2", ".ref": "main", ".warehouse": "s3://bucket/wh", ".cache-enabled": "false",
    ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO", ".s3.endpoint": S3, ".s3.path-style-access": "true",
    ".client.region": "us-east-1",
}.items():
    builder = builder.config("spark.sql.catalog.n" + key, value)
spark = builder.getOrCreate()
spark.sql("CREATE NAMESPACE n.writers")
archive = io.BytesIO()
tar = tarfile.open(fileobj=archive, mode="w:gz")


def equality_delete(name, columns, rows):
    """Commits an equality delete file, which Spark itself does not write, with the Java library. rows: JSON by column."""
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    iceberg = jvm.org.apache.iceberg
    t = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    names, ids = jvm.java.util.ArrayList(), gateway.new_array(gateway.jvm.int, len(columns))
    for i, column in enumerate(columns):
        names.add(column)
        ids[i] = t.schema().findField(column).fieldId()
    schema = t.schema().select(names)
    factory = iceberg.data.GenericAppenderFactory(t, t.schema(), t.spec(), jvm.java.util.HashMap(), ids, schema, None)
    location = t.locationProvider().newDataLocation(f"equality-{t.currentSnapshot().snapshotId()}.parquet")
    out = t.encryption().encrypt(t.io().newOutputFile(location))
    writer = factory.newEqDeleteWriter(out, iceberg.FileFormat.PARQUET, None)
    for row in rows:
        values = {str(schema.findField(column).fieldId()): value for column, value in row.items()}
        writer.write(iceberg.SingleValueParser.fromJson(schema.asStruct(), json.dumps(values)))
    writer.close()
    t.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def table(name, create, statements):
    spark.sql(f"CREATE TABLE n.writers.{name} {create}")
    steps = []
    for statement in statements:
        if isinstance(statement, str):
            spark.sql(statement.replace("$T", f"n.writers.{name}"))
        else:
            equality_delete(f"n.writers.{name}", *statement)
            statement = f"equality delete of {json.dumps(statement[1])}"
        content = requests.get(f"{NESSIE}/api/v2/trees/main/contents/writers.{name}").json()["content"]
        rows = [row.asDict(recursive=True) for row in spark.table(f"n.writers.{name}").collect()]
        steps.append({"statement": statement, "metadata": content["metadataLocation"], "rows": rows})
    prefix = steps[-1]["metadata"].removeprefix("s3://bucket/").rsplit("/metadata/", 1)[0]
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix=prefix):
        for found in page["Contents"]:
            data = s3.get_object(Bucket="bucket", Key=found["Key"])["Body"].read()
            entry = tarfile.TarInfo(found["Key"])
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return {"name": name, "steps": steps}


READ = "'write.delete.mode'='merge-on-read','write.update.mode'='merge-on-read'"
SELECT = ("SELECT id, concat('n', id), element_at(array('a/b', 'c=d&', 'é日', NULL), CAST(id % 4 + 1 AS INT)), "
          "named_struct('ü.x', id, 'y', array(concat('s', id), NULL)) FROM range({}, {}, 1, 1)")
COLUMNS = "(id BIGINT, `c.o l` STRING, `größe %/日付` STRING, st STRUCT<`ü.x`: BIGINT, y: ARRAY<STRING>>)"
cases = [
    # Names whose letters Avro does not have, in manifests; and LZ4 as Hadoop frames it, in data and delete files.
    table("names", f"{COLUMNS} USING iceberg PARTITIONED BY (`größe %/日付`) TBLPROPERTIES({READ},'write.parquet.compression-codec'='lz4')", [
        "INSERT INTO $T " + SELECT.format(0, 10),
        "DELETE FROM $T WHERE id % 5 = 1",
        "INSERT INTO $T " + SELECT.format(10, 14),
        "UPDATE $T SET `c.o l` = 'upd' WHERE `größe %/日付` = 'a/b'",
        "DELETE FROM $T WHERE `größe %/日付` IS NULL",
    ]),
    # Equality deletes on columns that data files hold in an earlier type, or not at all, or that have left the table.
    table("equality", "(id INT, k INT, h FLOAT, g STRING) USING iceberg", [
        "INSERT INTO $T SELECT CAST(id AS INT), CAST(id % 5 AS INT), CAST(id / 2 AS FLOAT), concat('g', id % 4) FROM range(0, 20, 1, 1)",
        (["k"], [{"k": 1}]),
        (["g"], [{"g": "g2"}]),
        "ALTER TABLE $T ALTER COLUMN k TYPE BIGINT",
        "ALTER TABLE $T ALTER COLUMN h TYPE DOUBLE",
        "ALTER TABLE $T RENAME COLUMN id TO ident",
        "INSERT INTO $T SELECT CAST(id AS INT), id % 5, id / 2, concat('g', id % 4) FROM range(20, 30, 1, 1)",
        (["k"], [{"k": 3}]),
        (["h", "ident"], [{"h": 7.0, "ident": 14}, {"h": 10.0, "ident": 20}, {"h": 12.0, "ident": 20}]),
        "ALTER TABLE $T DROP COLUMN g",
        "ALTER TABLE $T ADD COLUMN later STRING",
        "INSERT INTO $T VALUES (30, 7, 1.5, 'x'), (31, 8, NULL, 'y'), (32, 8, NULL, NULL)",
        (["later", "k"], [{"later": None, "k": 0}, {"later": "x", "k": 7}, {"later": "y", "k": 7}]),
        (["h"], [{"h": None}]),
    ]),
]
tar.close()
shutil.rmtree(OUT, ignore_errors=True)
OUT.mkdir(parents=True)
(OUT / "files.tar.gz").write_bytes(archive.getvalue())
(OUT / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")

# SPDX-License-Identifier: Apache-2.0
"""Makes ../testdata/duckdb: tables that DuckDB wrote through Nessie's REST catalog, as one archive of the objects of their
bucket, and cases.json with the rows that DuckDB itself reads after each statement.

    pip install duckdb==1.5.5 duckdb-extensions duckdb-extension-iceberg duckdb-extension-avro duckdb-extension-httpfs
    NESSIE=http://127.0.0.1:19120 S3=127.0.0.1:9000 python duckdb_rest.py    # bucket "bucket", key k, secret s
"""

import io
import json
import os
import pathlib
import shutil
import tarfile
import urllib.request

import duckdb

NESSIE, S3 = os.environ["NESSIE"], os.environ["S3"]
OUT = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "duckdb"
db = duckdb.connect()
for extension in ("avro", "httpfs", "iceberg"):
    db.execute(f"LOAD {extension}")
db.execute(f"CREATE SECRET s (TYPE s3, KEY_ID 'k', SECRET 's', ENDPOINT '{S3}', URL_STYLE 'path', USE_SSL false, REGION 'us-east-1')")
db.execute(f"ATTACH 'warehouse' AS n (TYPE iceberg, ENDPOINT '{NESSIE}/iceberg', AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none')")
db.execute("CREATE SCHEMA IF NOT EXISTS n.writers")
archive = io.BytesIO()
tar = tarfile.open(fileobj=archive, mode="w:gz")


def table(name, columns, statements):
    db.execute(f"DROP TABLE IF EXISTS n.writers.{name}")
    db.execute(f"CREATE TABLE n.writers.{name} ({columns})")
    steps = []
    for statement in statements:
        db.execute(statement.replace("$T", f"n.writers.{name}"))
        content = json.load(urllib.request.urlopen(f"{NESSIE}/api/v2/trees/main/contents/writers.{name}"))["content"]
        if content["snapshotId"] == -1:
            continue
        result = db.execute(f"SELECT * FROM n.writers.{name}")
        names = [d[0] for d in result.description]
        rows = [{n: v if isinstance(v, (int, str, type(None))) else str(v) for n, v in zip(names, row)} for row in result.fetchall()]
        steps.append({"statement": statement, "metadata": content["metadataLocation"], "rows": rows})
    folder = steps[-1]["metadata"].rsplit("/metadata/", 1)[0]
    for location, data in db.execute(f"SELECT filename, content FROM read_blob('{folder}/**')").fetchall():
        entry = tarfile.TarInfo(location.removeprefix("s3://bucket/"))
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    return {"name": name, "steps": steps}


cases = [
    table("repartitioned", "id INTEGER, s VARCHAR, d DATE", [
        "INSERT INTO $T SELECT r::INTEGER, concat('k é/=', r % 3), DATE '1969-11-15' + (r * 47)::INTEGER FROM range(0, 8) g(r)",
        "ALTER TABLE $T SET PARTITIONED BY (year(d))",
        "INSERT INTO $T SELECT r::INTEGER, concat('k é/=', r % 3), DATE '1969-11-15' + (r * 47)::INTEGER FROM range(8, 14) g(r)",
        "ALTER TABLE $T SET PARTITIONED BY (s)",
        "INSERT INTO $T SELECT r::INTEGER, concat('k é/=', r % 3), DATE '1969-11-15' + (r * 47)::INTEGER FROM range(14, 20) g(r)",
        "DELETE FROM $T WHERE id % 5 = 1",
        "UPDATE $T SET s = 'upd' WHERE id % 4 = 2",
        "DELETE FROM $T WHERE id IN (0, 2, 9, 15)",
    ]),
]
tar.close()
shutil.rmtree(OUT, ignore_errors=True)
OUT.mkdir(parents=True)
(OUT / "files.tar.gz").write_bytes(archive.getvalue())
(OUT / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")

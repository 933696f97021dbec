# SPDX-License-Identifier: Apache-2.0
"""Makes ../testdata/clickhouse: tables that ClickHouse wrote, as one archive of files below /tmp/rpk-nessie-writers, and
cases.json with the rows that ClickHouse itself reads after each statement.

    pip install chdb==4.4.0
    python clickhouse.py
"""

import glob
import json
import os
import pathlib
import re
import shutil
import tarfile

from chdb import session

ROOT = "/tmp/rpk-nessie-writers"
OUT = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "clickhouse"
shutil.rmtree(ROOT, ignore_errors=True)
os.makedirs(ROOT)
os.chdir(ROOT)  # ClickHouse writes below its working directory only
db = session.Session()
db.query("SET allow_insert_into_iceberg=1")
db.query("SET output_format_json_quote_64bit_integers=0")
db.query("SET date_time_output_format='iso'")


def table(name, columns, statements, partition=""):
    folder = f"{ROOT}/{name}/"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    db.query(f"CREATE TABLE {name} ({columns}) ENGINE=IcebergLocal('{folder}') {partition} SETTINGS iceberg_format_version=2")
    steps = []
    for statement in statements:
        db.query(statement.replace("$T", name))
        text = str(db.query(f"SELECT * FROM {name}", "JSONEachRow"))
        text = re.sub(r"(:\d\d\.\d{6})Z", r"\1", text)  # timestamps without zone
        rows = [json.loads(line) for line in text.splitlines()]
        steps.append({"statement": statement, "metadata": newest(folder), "rows": rows})
    return {"name": name, "steps": steps}


def newest(folder):
    files = glob.glob(folder + "metadata/*.metadata.json")
    return max(files, key=lambda f: int(re.search(r"v(\d+)\.metadata", f)[1]))


cases = [
    table("changed", "id Int32, s Nullable(String), l Int64, d Float64", [
        "INSERT INTO $T SELECT number, if(number % 5 = 1, NULL, concat('x', toString(number))), number * 1000, number / 4 FROM numbers(20)",
        "INSERT INTO $T VALUES (100, 'q', 5, 1.5)",
        "ALTER TABLE $T DELETE WHERE id = 3",
        "ALTER TABLE $T UPDATE s = 'upd' WHERE id = 4",
    ]),
    table("partitioned", "id Int32, s String", [
        "INSERT INTO $T SELECT number, concat('x', toString(number % 3)) FROM numbers(20)",
        "INSERT INTO $T SELECT number, concat('x', toString(number % 3)) FROM numbers(20)",
        "ALTER TABLE $T DELETE WHERE id = 3",
    ], "PARTITION BY (s)"),
    table("typed", "id Int32, f Float32, d Date32, dt DateTime64(6), u UUID, a Array(Nullable(Int32)), m Map(String, Int32), t Tuple(a Int32, b String)", [
        "INSERT INTO $T VALUES (1, 1.5, '2024-02-29', '2024-02-29 12:00:00.123456', '00112233-4455-6677-8899-aabbccddeeff', [1, NULL], {'k': 1}, (1, 'x'))",
        "INSERT INTO $T VALUES (2, -0.25, '1969-12-31', '1969-12-31 23:59:59.999999', '00112233-4455-6677-8899-aabbccddeeff', [], {}, (2, ''))",
    ]),
    table("altered", "id Int32, s String", [
        "INSERT INTO $T VALUES (1, 'a')",
        "ALTER TABLE $T ADD COLUMN x Nullable(Int32)",
        "INSERT INTO $T VALUES (2, 'b', 3)",
        "ALTER TABLE $T MODIFY COLUMN id Int64",
        "ALTER TABLE $T RENAME COLUMN s TO s2",
        "ALTER TABLE $T DROP COLUMN x",
        "INSERT INTO $T VALUES (5000000000, 'c')",
    ]),
]
shutil.rmtree(OUT, ignore_errors=True)
OUT.mkdir(parents=True)
with tarfile.open(OUT / "files.tar.gz", "w:gz") as archive:
    for path in sorted(pathlib.Path(ROOT).glob("*/*/*")):
        archive.add(path, arcname=path.relative_to(ROOT))
(OUT / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")

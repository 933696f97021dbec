# SPDX-License-Identifier: Apache-2.0
"""Makes ../testdata/parquet: Parquet files as other writers make them, and cases.json with the table that each belongs to
and the rows that it holds, read by pyarrow (or written out here, where pyarrow does not know the table's types).

    pip install pyarrow==26.0.1 polars==2.1.0 duckdb==1.5.5 fastparquet==2026.9.0 numpy
    python parquet.py
"""

import base64
import datetime
import decimal
import json
import math
import os
import pathlib
import uuid

import duckdb
import fastparquet
import numpy
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as encryption

import footers

OUT = pathlib.Path(__file__).parent.parent / "testdata" / "parquet"
CASES = []


def field(id, name, type, required=False):
    return {"id": id, "name": name, "type": type, "required": required}


def mapping(fields):
    """The name mapping of a table whose files have its own names."""
    out = []
    for f in fields:
        t, entry = f["type"], {"field-id": f["id"], "names": [f["name"]]}
        if isinstance(t, dict):
            entry["fields"] = mapping(inner(t))
        out.append(entry)
    return out


def inner(t):
    if t["type"] == "struct":
        return t["fields"]
    if t["type"] == "list":
        return [field(t["element-id"], "element", t["element"])]
    return [field(t["key-id"], "key", t["key"]), field(t["value-id"], "value", t["value"])]


def ms(n, unit):
    return n * {"s": 1_000_000, "ms": 1000, "us": 1}[unit] if unit != "ns" else n // 1000


def iso(micros, zone):
    t = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)
    return f"{t.year:04}" + t.strftime("-%m-%dT%H:%M:%S.%f") + ("+00:00" if zone else "")


def value(v, t):
    """The Iceberg JSON of a pyarrow scalar for a table's type."""
    if not v.is_valid:
        return None
    kind = v.type
    if isinstance(t, dict):
        if t["type"] == "struct":
            names = [f.name for f in kind]
            return {f["name"]: value(v[f["name"]], f["type"]) if f["name"] in names else None for f in t["fields"]}
        if t["type"] == "list":
            return [value(e, t["element"]) for e in v.values] if len(v.values) else []
        if t["key"] == "string":
            return {k.as_py(): value(x, t["value"]) for k, x in zip(v.values.field(0), v.values.field(1))}
    if pa.types.is_timestamp(kind):
        if t.endswith("_ns"):
            n = v.value * {"ms": 10**6, "us": 1000, "ns": 1}[kind.unit]
            return iso(n // 1000, None) + f"{n % 1000:03}" + ("+00:00" if "tz" in t else "")
        return iso(ms(v.value, kind.unit), "tz" in t)
    if pa.types.is_time(kind):
        return iso(ms(v.value, kind.unit), None)[11:]
    if pa.types.is_date(kind):
        return v.as_py().isoformat()
    if pa.types.is_decimal(kind):
        return str(v.as_py())
    if t == "uuid":
        return str(uuid.UUID(bytes=v.as_py())) if isinstance(v.as_py(), bytes) else str(v.as_py())
    x = v.as_py()
    if t == "string" and isinstance(x, bytes):
        return x.decode()
    if t in ("binary",) or str(t).startswith("fixed"):
        return (x if isinstance(x, bytes) else x.encode()).hex()
    if isinstance(x, (float, numpy.floating)):
        x = float(x)
        if math.isnan(x):
            return "NaN"
        if math.isinf(x):
            return "Infinity" if x > 0 else "-Infinity"
    return x


def case(name, fields, write, names=None, want=None, refused=None, format=2, columns=None):
    """names: the name mapping; None: the table's own names, False: none. columns: the file's names, where they differ."""
    path = OUT / f"{name}.parquet"
    write(str(path))
    table = pq.ParquetFile(path).read() if want is None and refused is None else None
    if table is not None:
        want = []
        for i in range(table.num_rows):
            row = {}
            for f in fields:
                column = (columns or {}).get(f["name"], f["name"])
                row[f["name"]] = value(table.column(column)[i], f["type"]) if column in table.column_names else None
            want.append(row)
    same = [c["name"] for c in CASES if c["want"] == want and want and len(want) > 10]
    CASES.append({
        "name": name, "format": format, "fields": fields, "rows": pq.ParquetFile(path).metadata.num_rows,
        "mapping": mapping(fields) if names is None else names or None, "want": want, "want_of": same[0] if same else "", "refused": refused or "",
    })


def arrow(table, **options):
    return lambda path: pq.write_table(table, path, **options)


def edited(table, change, **options):
    """A file whose footer is changed after it was written."""
    def write(path):
        pq.write_table(table, path, store_schema=False, **options)
        file = pathlib.Path(path)
        file.write_bytes(footers.edit(file.read_bytes(), change))
    return write


# Encodings, page versions and codecs, with NULLs and several pages and row groups.
N = 400
mixed = pa.table({
    "i": pa.array([None if i % 7 == 3 else (i * 37) % 109 - 50 for i in range(N)], pa.int32()),
    "l": pa.array([None if i % 11 == 3 else i * 10**12 + i % 5 for i in range(N)], pa.int64()),
    "s": pa.array([None if i % 13 == 5 else f'prefix-{i // 3:05d}-ä"' for i in range(N)]),
    "d": pa.array([None if i % 5 == 1 else i / 7 for i in range(N)]),
    "b": pa.array([None if i % 17 == 2 else i % 3 == 0 for i in range(N)]),
    "f": pa.array([i / 2 for i in range(N)], pa.float32()),
})
MIXED = [field(1, "i", "int"), field(2, "l", "long"), field(3, "s", "string"), field(4, "d", "double"), field(5, "b", "boolean"), field(6, "f", "float")]
for v in ("1.0", "2.0"):
    common = dict(data_page_version=v, data_page_size=300, row_group_size=250)
    case(f"delta_v{v[0]}", MIXED, arrow(mixed, use_dictionary=False, column_encoding={
        "i": "DELTA_BINARY_PACKED", "l": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY", "d": "BYTE_STREAM_SPLIT", "b": "RLE", "f": "BYTE_STREAM_SPLIT"}, **common))
    case(f"split_v{v[0]}", MIXED, arrow(mixed, use_dictionary=False, column_encoding={
        "i": "BYTE_STREAM_SPLIT", "l": "BYTE_STREAM_SPLIT", "s": "DELTA_LENGTH_BYTE_ARRAY"}, **common))
    case(f"dictionary_that_overflows_v{v[0]}", MIXED, arrow(mixed, dictionary_pagesize_limit=500, **common))
    for codec in ("snappy", "gzip", "zstd", "lz4", "brotli", "none"):
        case(f"{codec}_v{v[0]}", MIXED, arrow(mixed, compression=codec, write_page_checksum=True, write_page_index=True, **common))

# Timestamps and times in other units.
stamps = [datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), None, datetime.datetime(2024, 2, 29, 12, 0, 0, 123000)]
for unit in ("ms", "us", "ns"):
    for zone in (None, "UTC"):
        t = pa.table({"t": pa.array(stamps, pa.timestamp(unit, tz=zone))})
        own, other = ("timestamptz", "timestamp") if zone else ("timestamp", "timestamptz")
        case(f"{own}_in_{unit}", [field(1, "t", own)], arrow(t, version="2.6"))
        case(f"{own}_in_{unit}_as_nanoseconds", [field(1, "t", own + "_ns")], arrow(t, version="2.6"), format=3)
        case(f"{own}_in_{unit}_as_{other}", [field(1, "t", other)], arrow(t, version="2.6"), refused=None if zone else "a column of type")
case("timestamp_between_microseconds", [field(1, "t", "timestamp")], arrow(pa.table({"t": pa.array([-1, 978307200000001999], pa.timestamp("ns"))}), version="2.6"))
old = dict(use_deprecated_int96_timestamps=True)
nanos = pa.array(stamps * 20, pa.timestamp("ns"))
case("int96_as_timestamp", [field(1, "t", "timestamp")], arrow(pa.table({"t": nanos}), **old))
case("int96_as_timestamptz", [field(1, "t", "timestamptz")], arrow(pa.table({"t": nanos}), use_dictionary=False, data_page_version="2.0", **old))
far = pa.array([datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59), None], pa.timestamp("us"))
case("int96_beyond_nanoseconds", [field(1, "t", "timestamp")], arrow(pa.table({"t": far}), **old),
     want=[{"t": "0001-01-01T00:00:00.000000"}, {"t": "9999-12-31T23:59:59.000000"}, {"t": None}])
nested = pa.table({
    "id": pa.array([1, 2, 3], pa.int64()),
    "l": pa.array([[stamps[0], None], None, []], pa.list_(pa.timestamp("ns"))),
    "st": pa.array([{"t": stamps[2], "n": 1}, None, {"t": None, "n": 2}], pa.struct([("t", pa.timestamp("ns")), ("n", pa.int32())])),
    "m": pa.array([[("k", stamps[0])], [], None], pa.map_(pa.string(), pa.timestamp("ns"))),
})
NESTED = [
    field(1, "id", "long"),
    field(2, "l", {"type": "list", "element-id": 5, "element": "timestamp", "element-required": False}),
    field(3, "st", {"type": "struct", "fields": [field(6, "t", "timestamp"), field(7, "n", "int")]}),
    field(4, "m", {"type": "map", "key-id": 8, "key": "string", "value-id": 9, "value": "timestamp", "value-required": False}),
]
case("int96_nested", NESTED, arrow(nested, **old))
case("nanoseconds_nested", NESTED, arrow(nested, version="2.6"))
clock = [datetime.time(0, 0, 1, 2000), None, datetime.time(23, 59, 59, 999000)]
for unit in ("ms", "us", "ns"):
    case(f"time_in_{unit}", [field(1, "t", "time")], arrow(pa.table({"t": pa.array(clock, pa.time32(unit) if unit == "ms" else pa.time64(unit))})))

# Other physical types and annotations.
D = decimal.Decimal
case("decimals_as_integers", [field(1, "a", "decimal(9, 2)"), field(2, "b", "decimal(18, 3)")], arrow(pa.table({
    "a": pa.array([D("-1.25"), None], pa.decimal128(9, 2)), "b": pa.array([D("-0.001"), D("1234567890.123")], pa.decimal128(18, 3))}), store_decimal_as_integer=True))
case("decimal_promoted", [field(1, "a", "decimal(20, 2)")], arrow(pa.table({"a": pa.array([D("-1.25")], pa.decimal128(9, 2))})))
case("decimal_of_other_scale", [field(1, "a", "decimal(20, 4)")], arrow(pa.table({"a": pa.array([D("-1.25")], pa.decimal128(9, 2))})), refused="a column of type decimal(9, 2)")
for width in (8, 16, 32, 64):
    case(f"uint{width}_as_long", [field(1, "a", "long")], arrow(pa.table({"a": pa.array([5, 2**(width - 2), None], getattr(pa, f"uint{width}")())})))
case("uint64_beyond_long", [field(1, "a", "long")], arrow(pa.table({"a": pa.array([2**64 - 1], pa.uint64())})), refused="not in range")
case("small_integers", [field(1, "a", "int"), field(2, "b", "long")], arrow(pa.table({"a": pa.array([-5, None], pa.int8()), "b": pa.array([300, -300], pa.int16())})))
case("long_as_int", [field(1, "a", "int")], arrow(pa.table({"a": pa.array([5, 2**40], pa.int64())})), refused="a column of type long")
case("float16", [field(1, "a", "float")], arrow(pa.table({"a": pa.array([numpy.float16(1.5), None], pa.float16())})))
case("string_without_annotation", [field(1, "a", "string")], arrow(pa.table({"a": pa.array([b'x"y', "ä".encode(), None], pa.binary())})))
case("string_that_is_not_utf8", [field(1, "a", "string")], arrow(pa.table({"a": pa.array([b"\xff\xfe"], pa.binary())})), refused="invalid UTF8")
case("string_as_binary", [field(1, "a", "binary")], arrow(pa.table({"a": pa.array(['x"', None])})))
case("json", [field(1, "a", "string")], arrow(pa.table({"a": pa.array(['{"x":1}', None], pa.json_())}), store_schema=False))
case("dictionary_type", [field(1, "a", "string")], arrow(pa.table({"a": pa.array(["x", "y", None, "x"]).dictionary_encode()})))
u = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
case("uuid", [field(1, "a", "uuid")], arrow(pa.table({"a": pa.array([u.bytes, None], pa.uuid())})))
case("uuid_without_annotation", [field(1, "a", "uuid")], arrow(pa.table({"a": pa.array([u.bytes, None], pa.binary(16))})))
special = [float("nan"), -0.0, 0.0, float("inf"), float("-inf"), None]
case("special_doubles", [field(1, "a", "double")], arrow(pa.table({"a": special})))


def annotate(converted):
    return lambda footer: footers.set_converted(footers.elements(footer)[1], converted)


for unit, converted in (("ms", 9), ("us", 10)):
    case(f"older_annotation_in_{unit}", [field(1, "a", "timestamp")], edited(pa.table({"a": pa.array(stamps, pa.timestamp(unit))}), annotate(converted)))
text = pa.table({"a": pa.array([b"x", None], pa.binary())})
case("enum", [field(1, "a", "string")], edited(text, annotate(4)), want=[{"a": "x"}, {"a": None}])

# Rows and columns that are not there.
case("no_rows", MIXED, arrow(mixed.slice(0, 0)))


def empty_groups(path):
    with pq.ParquetWriter(path, mixed.schema) as w:
        for part in (mixed.slice(0, 0), mixed.slice(0, 10), mixed.slice(0, 0), mixed.slice(10, 5)):
            w.write_table(part)


case("row_groups_without_rows", MIXED, empty_groups)
AB = [field(1, "a", "int"), field(2, "b", "string")]
ab = pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"]})
case("all_null", AB, arrow(pa.table({"a": pa.array([None] * 5, pa.int32()), "b": pa.array([None] * 5, pa.null())})))
case("more_columns", AB, arrow(pa.table({"x": ["q", "r"], "b": ["x", "y"], "l": [[1], []], "st": [{"p": 1}, None], "a": pa.array([1, 2], pa.int32())})))
case("another_case", AB, arrow(pa.table({"A": pa.array([1], pa.int32()), "b": ["x"]})))
case("no_mapping", AB, arrow(ab), names=False, refused="without schema.name-mapping.default")
case("mapping_with_other_names", AB, arrow(pa.table({"old_a": pa.array([1], pa.int32()), "B": ["x"]})), columns={"a": "old_a", "b": "B"},
     names=[{"field-id": 1, "names": ["a", "old_a"]}, {"field-id": 2, "names": ["b", "B"]}])
case("mapping_of_some", AB, arrow(ab), names=[{"field-id": 1, "names": ["a"]}], want=[{"a": 1, "b": None}, {"a": 2, "b": None}])
numbered = ab.cast(pa.schema([pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "1"}), pa.field("b", pa.string(), metadata={"PARQUET:field_id": "2"})]))
case("ids_and_other_names", AB, arrow(numbered.rename_columns(["b", "a"])), names=False, columns={"a": "b", "b": "a"})
some = pa.table([ab["a"], ab["b"]], schema=pa.schema([pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "1"}), pa.field("other", pa.string())]))
case("ids_of_some", AB, arrow(some), names=False)
named = pa.table([ab["a"], ab["b"]], schema=pa.schema([pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "1"}), pa.field("b", pa.string())]))


class Keys(encryption.KmsClient):
    def __init__(self, _):
        encryption.KmsClient.__init__(self)

    def wrap_key(self, key, _):
        return base64.b64encode(key)


def encrypted(path):
    factory = encryption.CryptoFactory(Keys)
    how = encryption.EncryptionConfiguration(footer_key="f", column_keys={"c": ["a"]}, plaintext_footer=True)
    with pq.ParquetWriter(path, ab.schema, encryption_properties=factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)) as w:
        w.write_table(ab)


case("encrypted_column", AB, encrypted, refused="encrypted data file")
case("no_id_on_one_of_the_table", AB, arrow(named), names=False, refused="none on b")
case("required_that_is_missing", [field(1, "a", "int"), field(3, "z", "int", True)], arrow(ab), refused="required field is missing")
odd = ["a.b", "ä ü", 'quo"te', "back\\slash", "new\nline", "日本", "it's", "`tick`", "a/b", "$x", "1"]
case("odd_names", [field(i + 1, n, "int") for i, n in enumerate(odd)], arrow(pa.table({n: pa.array([i], pa.int32()) for i, n in enumerate(odd)})))

# Lists and maps of older writers.
LIST = [field(1, "l", {"type": "list", "element-id": 2, "element": "int", "element-required": False})]
lists = pa.array([[1, None, 3], [], None, [4]], pa.list_(pa.int32()))
case("list", LIST, arrow(pa.table({"l": lists})))
outer = pa.field("l", lists.type, metadata={"PARQUET:field_id": "1"})
case("list_with_an_id_and_elements_without", LIST, arrow(pa.table({"l": lists}, schema=pa.schema([outer]))), names=False)
case("list_of_items", LIST, arrow(pa.table({"l": lists}), use_compliant_nested_type=False))
case("large_list", LIST, arrow(pa.table({"l": lists.cast(pa.large_list(pa.int32()))})))
case("fixed_size_list", LIST, arrow(pa.table({"l": pa.array([[1, 2], [3, None]], pa.list_(pa.int32(), 2))})))


def rename(**names):
    def change(footer):
        for e in footers.elements(footer):
            footers.set_name(e, names.get(footers.name(e), footers.name(e)))
        for group in footers.chunks(footer):
            for chunk in group:
                footers.set_path(chunk, [names.get(p, p) for p in footers.path(chunk)])
    return change


case("list_of_hive", LIST, edited(pa.table({"l": lists}), rename(list="bag", element="array_element")), want=[{"l": [1, None, 3]}, {"l": []}, {"l": None}, {"l": [4]}])
full = pa.array([[1, 2], [], None, [4]], pa.list_(pa.field("element", pa.int32(), nullable=False)))


def two_levels(footer):
    """optional group l (LIST) { repeated int32 array }"""
    root, outer, middle, element = footers.elements(footer)
    footers.set_repetition(element, 2)
    footers.set_name(element, "array")
    footers.set_elements(footer, [root, outer, element])
    for group in footers.chunks(footer):
        footers.set_path(group[0], ["l", "array"])


case("list_of_two_levels", LIST, edited(pa.table({"l": full}), two_levels), want=[{"l": [1, 2]}, {"l": []}, {"l": None}, {"l": [4]}])
pair = pa.struct([("x", pa.int32()), ("y", pa.string())])
pairs = pa.array([[{"x": 1, "y": "p"}], [], None, [{"x": None, "y": "q"}]], pa.list_(pa.field("element", pair, nullable=False)))
PAIRS = [field(1, "l", {"type": "list", "element-id": 2, "element-required": False, "element": {"type": "struct", "fields": [field(3, "x", "int"), field(4, "y", "string")]}})]


def tuples(name):
    """optional group l (LIST) { repeated group NAME { x, y } }"""
    def change(footer):
        root, outer, middle, element, x, y = footers.elements(footer)
        footers.set_repetition(element, 2)
        footers.set_name(element, name)
        footers.set_elements(footer, [root, outer, element, x, y])
        for group in footers.chunks(footer):
            for chunk, leaf in zip(group, ("x", "y")):
                footers.set_path(chunk, ["l", name, leaf])
    return change


for name in ("array", "l_tuple"):
    case(f"list_of_{name}", PAIRS, edited(pa.table({"l": pairs}), tuples(name)),
         want=[{"l": [{"x": 1, "y": "p"}]}, {"l": []}, {"l": None}, {"l": [{"x": None, "y": "q"}]}])
MAP = [field(1, "m", {"type": "map", "key-id": 2, "key": "string", "value-id": 3, "value": "int", "value-required": False})]
maps = pa.table({"m": pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int32()))})
MAPS = [{"m": {"a": 1, "b": None}}, {"m": {}}, {"m": None}]
case("map", MAP, arrow(maps))
case("map_of_hive", MAP, edited(maps, rename(key_value="map")), want=MAPS)


def older_map(footer):
    """optional group m (MAP_KEY_VALUE) { repeated group map (MAP_KEY_VALUE) }"""
    rename(key_value="map")(footer)
    footers.set_converted(footers.elements(footer)[1], 2)
    footers.set_converted(footers.elements(footer)[2], 2)


case("map_of_key_values", MAP, edited(maps, older_map), want=MAPS)

# Other writers.
frame = {"i": [1, None, 3], "s": ["x", 'ä"', None], "d": [1.5, None, -0.0], "t": stamps, "day": [datetime.date(1969, 12, 31), None, datetime.date(2024, 2, 29)]}
FRAME = [field(1, "i", "long"), field(2, "s", "string"), field(3, "d", "double"), field(4, "t", "timestamp"), field(5, "day", "date")]
case("polars", FRAME, lambda p: polars.DataFrame(frame).write_parquet(p))
case("polars_time", [field(1, "t", "time")], lambda p: polars.DataFrame({"t": clock}).write_parquet(p))
case("polars_nanoseconds", [field(1, "t", "timestamp")], lambda p: polars.DataFrame({"t": stamps}, schema={"t": polars.Datetime("ns")}).write_parquet(p))
case("polars_enum", [field(1, "a", "string")], lambda p: polars.DataFrame({"a": polars.Series(["x", "y", None], dtype=polars.Enum(["x", "y"]))}).write_parquet(p))
case("polars_array", LIST, lambda p: polars.DataFrame({"l": [[1, 2], [3, None]]}, schema={"l": polars.Array(polars.Int32, 2)}).write_parquet(p))
case("pandas", FRAME, lambda p: pandas.DataFrame({k: pandas.Series(v, dtype="datetime64[ns]") if k == "t" else v for k, v in frame.items() if k != "i"} | {"i": pandas.array(frame["i"], dtype="Int64")}).to_parquet(p))
case("pandas_with_index", AB, lambda p: pandas.DataFrame({"a": pandas.array([1, 2], dtype="int32"), "b": ["x", "y"]}, index=["p", "q"]).to_parquet(p))
for times in ("int64", "int96"):
    case(f"fastparquet_{times}", [field(1, "a", "int"), field(2, "b", "string"), field(3, "t", "timestamp")], lambda p: fastparquet.write(
        p, pandas.DataFrame({"a": numpy.array([1, 2], dtype="int32"), "b": ["x", "y"], "t": pandas.to_datetime(["1969-12-31 23:59:59.999", "2024-02-29 00:00:00.000"]).astype("datetime64[ns]")}), times=times))
duck = "SELECT i::INTEGER i, i::BIGINT l, CASE WHEN i%3=0 THEN NULL ELSE concat('s', i//4) END s, i/7.0::DOUBLE d, i%2=0 b, i::FLOAT f FROM range(300) t(i)"
for version in ("V1", "V2"):
    case(f"duckdb_{version.lower()}", MIXED, lambda p: duckdb.sql(f"COPY ({duck}) TO '{p}' (FORMAT parquet, PARQUET_VERSION {version}, ROW_GROUP_SIZE 2048)"))
case("duckdb_types", [field(1, "t", "time"), field(2, "n", "timestamp"), field(3, "z", "timestamptz"), field(4, "u", "uuid"), field(5, "e", "string"), field(6, "c", "decimal(18, 3)")],
     lambda p: duckdb.sql(f"COPY (SELECT TIME '01:02:03.000004' t, TIMESTAMP_NS '1969-12-31 23:59:59.999999999' n, TIMESTAMPTZ '2024-01-01 00:00:00+00' z, '{u}'::UUID u, 'x'::ENUM('x','y') e, 1.25::DECIMAL(18,3) c) TO '{p}' (FORMAT parquet)"),
     want=[{"t": "01:02:03.000004", "n": "1969-12-31T23:59:59.999999", "z": "2024-01-01T00:00:00.000000+00:00", "u": str(u), "e": "x", "c": "1.250"}])

for c in CASES:
    if c["want_of"]:
        c["want"] = None
(OUT / "cases.json").write_text("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in CASES) + "\n]\n")

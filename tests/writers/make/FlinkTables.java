// SPDX-License-Identifier: Apache-2.0
//
// Makes ../testdata/flink: tables that Flink wrote through Nessie's catalog, as one archive of the objects of their bucket,
// and cases.json with the rows that Flink itself reads at each metadata file.
//
//     mvn -f flink.xml org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory=lib
//     javac -cp 'lib/*' -d classes FlinkTables.java    # a Java of 17
//     export NESSIE=http://127.0.0.1:19120 S3=http://127.0.0.1:9000 OUT=../testdata/flink    # bucket "bucket", key k, secret s
//     OPENS=$(for p in lang nio time util util.concurrent; do echo --add-opens=java.base/java.$p=ALL-UNNAMED; done)
//     java $OPENS -cp 'classes:lib/*' FlinkTables && python pack.py $OUT

import static org.apache.flink.types.RowKind.DELETE;
import static org.apache.flink.types.RowKind.INSERT;
import static org.apache.flink.types.RowKind.UPDATE_AFTER;
import static org.apache.flink.types.RowKind.UPDATE_BEFORE;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.runtime.typeutils.ExternalTypeInfo;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.nessie.NessieCatalog;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

public class FlinkTables {
  static final String NESSIE = System.getenv("NESSIE"), S3 = System.getenv("S3"), ONLY = System.getenv().getOrDefault("ONLY", "");
  static final Path OUT = Path.of(System.getenv("OUT"));
  static TableEnvironment batch;
  static NessieCatalog catalog;
  static final List<String> cases = new ArrayList<>();
  static final List<String> roots = new ArrayList<>();

  static Map<String, String> properties() {
    Map<String, String> p = new TreeMap<>();
    p.put("uri", NESSIE + "/api/v2");
    p.put("ref", "main");
    p.put("warehouse", "s3://bucket/wh");
    p.put("io-impl", "org.apache.iceberg.aws.s3.S3FileIO");
    p.put("s3.endpoint", S3);
    p.put("s3.path-style-access", "true");
    p.put("s3.access-key-id", "k");
    p.put("s3.secret-access-key", "s");
    p.put("client.region", "us-east-1");
    return p;
  }

  static void connect(TableEnvironment env) {
    StringBuilder sql = new StringBuilder("CREATE CATALOG n WITH ('type'='iceberg','cache-enabled'='false','catalog-impl'='org.apache.iceberg.nessie.NessieCatalog'");
    properties().forEach((k, v) -> sql.append(",'" + k + "'='" + v + "'"));
    env.executeSql(sql + ")");
    env.getConfig().setLocalTimeZone(ZoneOffset.UTC);
    env.executeSql("USE CATALOG n");
  }

  /** A row to be sent, in its kind. */
  static Row row(RowKind kind, Object... values) {
    return Row.ofKind(kind, values);
  }

  /** A sleep after each row, so that checkpoints fall between rows. */
  static class Slowly implements MapFunction<Row, Row> {
    final int millis;

    Slowly(int millis) {
      this.millis = millis;
    }

    @Override
    public Row map(Row r) throws Exception {
      Thread.sleep(millis);
      return r;
    }
  }

  /** One table: what was done to it, and what Flink reads after each metadata file. */
  static class Written {
    final String name;
    final List<String> steps = new ArrayList<>();
    String last = "";

    Written(String name, String columns, String partition, String... properties) throws Exception {
      this.name = name;
      StringBuilder with = new StringBuilder();
      for (int i = 0; i < properties.length; i += 2) with.append((i > 0 ? "," : "") + "'" + properties[i] + "'='" + properties[i + 1] + "'");
      batch.executeSql("DROP TABLE IF EXISTS n.writers." + name);
      batch.executeSql("CREATE TABLE n.writers." + name + " (" + columns + ") " + partition + " WITH (" + with + ")");
      last = ops().metadataFileLocation();
    }

    Table table() {
      return catalog.loadTable(TableIdentifier.of("writers", name));
    }

    TableMetadata ops() {
      return ((BaseTable) table()).operations().current();
    }

    Written sql(String statement) throws Exception {
      batch.executeSql(statement.replace("$T", "n.writers." + name)).await();
      return note(statement);
    }

    interface Change {
      void on(Table t);
    }

    Written api(String what, Change c) throws Exception {
      c.on(table());
      return note(what);
    }

    Written send(Row... rows) throws Exception {
      return send(0, "", rows);
    }

    /** Rows sent as a stream of changes; with a pause after each, in several checkpoints. */
    Written send(int pause, String options, Row... rows) throws Exception {
      Configuration conf = new Configuration();
      StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(conf);
      env.setParallelism(1);
      env.enableCheckpointing(pause > 0 ? pause * 5L : 500);
      StreamTableEnvironment streaming = StreamTableEnvironment.create(env, EnvironmentSettings.inStreamingMode());
      connect(streaming);
      org.apache.flink.table.catalog.ResolvedSchema resolved = streaming.from("n.writers." + name).getResolvedSchema();
      DataType type = resolved.toPhysicalRowDataType();
      org.apache.flink.table.api.Schema.Builder b = org.apache.flink.table.api.Schema.newBuilder().fromRowDataType(type);
      boolean key = !table().schema().identifierFieldIds().isEmpty();
      TypeInformation<Row> info = ExternalTypeInfo.of(type);
      var stream = env.fromCollection(Arrays.asList(rows), info).map(new Slowly(pause)).returns(info);
      // The rows go to the writer as they are: no operator before it may hold them against each other.
      streaming.getConfig().set("table.exec.sink.upsert-materialize", "NONE");
      ChangelogMode mode = key ? ChangelogMode.all() : ChangelogMode.insertOnly();
      streaming.createTemporaryView("default_catalog.default_database.src", streaming.fromChangelogStream(stream, b.build(), mode));
      streaming.executeSql("INSERT INTO n.writers." + name + " " + options + " SELECT * FROM default_catalog.default_database.src").await();
      StringBuilder what = new StringBuilder();
      for (Row r : rows) what.append((what.length() > 0 ? "; " : "") + r);
      return note(what.toString());
    }

    /** Reads the table as of every metadata file that came since. */
    Written note(String statement) throws Exception {
      TableMetadata now = ops();
      List<String> files = new ArrayList<>();
      for (TableMetadata.MetadataLogEntry e : now.previousFiles()) files.add(e.file());
      files.add(now.metadataFileLocation());
      for (String file : files.subList(files.indexOf(last) + 1, files.size())) {
        TableMetadata then = TableMetadataParser.read(table().io(), file);
        if (then.currentSnapshot() == null) continue;
        if (!then.schema().sameSchema(now.schema())) continue; // Flink reads in the newest schema only
        List<String> rows = new ArrayList<>();
        String query = "SELECT * FROM n.writers." + name + " /*+ OPTIONS('snapshot-id'='" + then.currentSnapshot().snapshotId() + "') */";
        try (CloseableIterator<Row> it = batch.executeSql(query).collect()) {
          while (it.hasNext()) rows.add(json(it.next(), then.schema().asStruct()));
        }
        steps.add("{\"statement\": " + quoted(statement) + ", \"metadata\": " + quoted(file) + ", \"rows\": [" + String.join(", ", rows) + "]}");
      }
      last = now.metadataFileLocation();
      return this;
    }

    void done() {
      cases.add("{\"name\": " + quoted(name) + ", \"steps\": [\n " + String.join(",\n ", steps) + "]}");
      roots.add(ops().location());
      System.out.println("made " + name + ": " + steps.size() + " steps");
    }
  }

  static String quoted(String s) {
    StringBuilder b = new StringBuilder("\"");
    for (char c : s.toCharArray()) b.append(c == '"' || c == '\\' ? "\\" + c : c < 32 ? String.format("\\u%04x", (int) c) : String.valueOf(c));
    return b.append('"').toString();
  }

  static String hex(byte[] v) {
    StringBuilder b = new StringBuilder();
    for (byte x : v) b.append(String.format("%02x", x));
    return b.toString();
  }

  static String number(double v, String text) {
    return Double.isNaN(v) ? "\"NaN\"" : Double.isInfinite(v) ? (v > 0 ? "\"Infinity\"" : "\"-Infinity\"") : text;
  }

  static String json(Object v, Type t) {
    if (v == null) return "null";
    switch (t.typeId()) {
      case FLOAT: return number((Float) v, v.toString());
      case DOUBLE: return number((Double) v, v.toString());
      case BOOLEAN: case INTEGER: case LONG: return v.toString();
      case STRING: return quoted(v.toString());
      case DECIMAL: return quoted(((BigDecimal) v).toPlainString());
      case BINARY: case FIXED: return quoted(hex((byte[]) v));
      case UUID: {
        ByteBuffer b = ByteBuffer.wrap((byte[]) v);
        return quoted(new UUID(b.getLong(), b.getLong()).toString());
      }
      case DATE: return quoted(v.toString());
      case TIME: return quoted(((LocalTime) v).format(DateTimeFormatter.ofPattern("HH:mm:ss.SSSSSS")));
      case TIMESTAMP: case TIMESTAMP_NANO: {
        boolean zone = v instanceof Instant;
        LocalDateTime at = zone ? LocalDateTime.ofInstant((Instant) v, ZoneOffset.UTC) : (LocalDateTime) v;
        return quoted(at.format(DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss." + (t.typeId() == Type.TypeID.TIMESTAMP ? "SSSSSS" : "SSSSSSSSS"))) + (zone ? "+00:00" : ""));
      }
      case LIST: {
        List<String> out = new ArrayList<>();
        for (Object e : (Object[]) v) out.add(json(e, ((Types.ListType) t).elementType()));
        return "[" + String.join(", ", out) + "]";
      }
      case MAP: {
        Types.MapType m = (Types.MapType) t;
        List<String> out = new ArrayList<>();
        boolean strings = m.keyType().typeId() == Type.TypeID.STRING;
        for (Map.Entry<?, ?> e : ((Map<?, ?>) v).entrySet()) {
          String key = json(e.getKey(), m.keyType()), value = json(e.getValue(), m.valueType());
          out.add(strings ? key + ": " + value : "{\"key\": " + key + ", \"value\": " + value + "}");
        }
        return strings ? "{" + String.join(", ", out) + "}" : "[" + String.join(", ", out) + "]";
      }
      case STRUCT: {
        List<String> out = new ArrayList<>();
        int i = 0;
        for (Types.NestedField f : ((Types.StructType) t).fields()) out.add(quoted(f.name()) + ": " + json(((Row) v).getField(i++), f.type()));
        return "{" + String.join(", ", out) + "}";
      }
      default: throw new IllegalArgumentException(t.toString());
    }
  }

  static BigDecimal dec(String s) {
    return new BigDecimal(s);
  }

  static byte[] bytes(int... v) {
    byte[] out = new byte[v.length];
    for (int i = 0; i < v.length; i++) out[i] = (byte) v[i];
    return out;
  }

  static final String TYPES = "id INT, b BOOLEAN, l BIGINT, f FLOAT, d DOUBLE, d9 DECIMAL(9, 2), d18 DECIMAL(18, 3), d38 DECIMAL(38, 10), s STRING, "
      + "y BYTES, x BINARY(3), dt DATE, tm TIME, ts TIMESTAMP(6), tz TIMESTAMP_LTZ(6), a ARRAY<ROW<p INT, q ARRAY<STRING>>>, m MAP<STRING, DECIMAL(20, 2)>, "
      + "mi MAP<INT, ROW<r DATE>>, st ROW<u ROW<v TIMESTAMP(6), w MAP<STRING, ARRAY<INT>>>, z STRING>";

  static Object[] typed(int i) {
    if (i % 4 == 3) {
      Object[] out = new Object[19];
      out[0] = i;
      return out;
    }
    LocalDateTime t = LocalDateTime.of(1969, 12, 31, 23, 59, 59, 999_999_000).plusNanos(i * 123_456_789_000L * 1000);
    Map<String, BigDecimal> m = new HashMap<>();
    m.put("k" + i, dec("-" + i + ".50"));
    m.put("n", null);
    Map<Integer, Row> mi = new HashMap<>();
    mi.put(i, Row.of(LocalDate.of(1900 + i, 2, 28)));
    Map<String, Integer[]> w = new HashMap<>();
    w.put("é", new Integer[] {i, null});
    return new Object[] {i, i % 2 == 0, Long.MAX_VALUE - i, i / 3f, i % 5 == 2 ? Double.NaN : i / 7.0, dec("-1234567.8" + i % 10), dec("123456789012345.67" + i % 10),
      dec("-1234567890123456789012345678.012345678" + i % 10), i % 4 == 2 ? "" : "s\"é日\n" + i, bytes(0, 255, i), bytes(i, 128, 1), LocalDate.of(1969, 12, 25).plusDays(i * 40L),
      LocalTime.of(i % 24, 59, 58, 123_000_000), t, t.toInstant(ZoneOffset.UTC), i % 4 == 1 ? new Row[] {} : new Row[] {Row.of(i, new String[] {"x", null}), null, Row.of(null, null)},
      m, mi, Row.of(i % 4 == 2 ? null : Row.of(t, w), "z" + i)};
  }

  static Row typed(RowKind kind, int i, String s) {
    Object[] v = typed(i);
    if (s != null) v[8] = s;
    return Row.ofKind(kind, v);
  }

  interface Making {
    void make() throws Exception;
  }

  static void make(String name, Making m) throws Exception {
    try {
      if (!ONLY.isEmpty() && !List.of(ONLY.split(",")).contains(name)) return;
      m.make();
    } catch (Exception e) {
      System.out.println("FAILED " + name);
      e.printStackTrace(System.out);
    }
  }

  public static void main(String[] args) throws Exception {
    System.setProperty("aws.region", "us-east-1");
    batch = TableEnvironment.create(EnvironmentSettings.inBatchMode());
    batch.getConfig().set("parallelism.default", "1");
    batch.getConfig().set("table.exec.resource.default-parallelism", "1");
    connect(batch);
    catalog = new NessieCatalog();
    catalog.setConf(new org.apache.hadoop.conf.Configuration());
    catalog.initialize("n", properties());
    try {
      catalog.createNamespace(Namespace.of("writers"));
    } catch (org.apache.iceberg.exceptions.AlreadyExistsException e) {
      // of an earlier run
    }
    String key = ", PRIMARY KEY (id) NOT ENFORCED", typesKey = TYPES.replaceFirst("id INT", "id INT NOT NULL") + key;

    for (String version : new String[] {"2", "3"}) {
      // Each checkpoint deletes by key what came before, and by position what itself wrote twice.
      make("upsert_v" + version, () -> new Written("upsert_v" + version, typesKey, "", "format-version", version, "write.upsert.enabled", "true")
          .send(typed(INSERT, 0, null), typed(INSERT, 1, null), typed(INSERT, 2, null), typed(INSERT, 3, null), typed(INSERT, 4, "first"), typed(UPDATE_AFTER, 4, "second"))
          .send(typed(UPDATE_AFTER, 1, "new"), typed(DELETE, 2, null), typed(INSERT, 5, null), typed(DELETE, 5, null), typed(INSERT, 6, null))
          .send(typed(DELETE, 0, null), typed(INSERT, 0, "again"), typed(UPDATE_AFTER, 3, "was null"), typed(UPDATE_AFTER, 3, null), typed(DELETE, 77, null))
          .send(typed(UPDATE_AFTER, 4, "s\"é日\n4"), typed(UPDATE_AFTER, 1, "new"))
          .done());
      make("checkpoints_v" + version, () -> new Written("checkpoints_v" + version, "id INT NOT NULL, p STRING NOT NULL, v BIGINT, PRIMARY KEY (id, p) NOT ENFORCED", "PARTITIONED BY (p)",
          "format-version", version, "write.upsert.enabled", "true", "write.metadata.previous-versions-max", "1000").send(40, "", stream(60)).done());
      make("retract_v" + version, () -> new Written("retract_v" + version, "id INT NOT NULL, v STRING, PRIMARY KEY (id) NOT ENFORCED", "", "format-version", version)
          .send(row(INSERT, 1, "a"), row(INSERT, 2, null), row(INSERT, 3, "c"))
          .send(row(UPDATE_BEFORE, 1, "a"), row(UPDATE_AFTER, 1, "b"), row(UPDATE_BEFORE, 2, null), row(UPDATE_AFTER, 2, "x"), row(INSERT, 4, "d"), row(UPDATE_BEFORE, 4, "d"), row(UPDATE_AFTER, 4, "e"))
          .send(row(DELETE, 3, "c"), row(INSERT, 3, "c"), row(DELETE, 1, "b"))
          .done());
    }
    // Keys of every type that Flink takes for one, but bytes of any or a fixed length: its reader holds those of the last key only.
    make("keys", () -> new Written("keys", "s STRING NOT NULL, d9 DECIMAL(9, 2) NOT NULL, d18 DECIMAL(18, 3) NOT NULL, d38 DECIMAL(38, 10) NOT NULL, dt DATE NOT NULL, tm TIME NOT NULL, ts TIMESTAMP(6) NOT NULL, "
        + "tz TIMESTAMP_LTZ(6) NOT NULL, b BOOLEAN NOT NULL, l BIGINT NOT NULL, v INT, PRIMARY KEY (s, d9, d18, d38, dt, tm, ts, tz, b, l) NOT ENFORCED", "", "format-version", "2", "write.upsert.enabled", "true")
        .send(keyed(INSERT, 0, 0), keyed(INSERT, 1, 0), keyed(INSERT, 2, 0), keyed(INSERT, 4, 0))
        .send(keyed(UPDATE_AFTER, 0, 1), keyed(DELETE, 1, 0), keyed(UPDATE_AFTER, 4, 1), keyed(UPDATE_AFTER, 4, 2))
        .done());
    // Partitions by transforms, which the SQL can't say, and a specification that changes between upserts.
    make("transforms", () -> {
      Written w = new Written("transforms", "id INT NOT NULL, ts TIMESTAMP(6) NOT NULL, s STRING NOT NULL, d DECIMAL(20, 2) NOT NULL, v INT, PRIMARY KEY (id, ts, s, d) NOT ENFORCED", "", "format-version", "2", "write.upsert.enabled", "true");
      w.api("partition", t -> t.updateSpec().addField(org.apache.iceberg.expressions.Expressions.bucket("id", 3)).addField(org.apache.iceberg.expressions.Expressions.day("ts"))
          .addField(org.apache.iceberg.expressions.Expressions.truncate("s", 2)).addField(org.apache.iceberg.expressions.Expressions.bucket("d", 2)).commit());
      w.send(parted(INSERT, 0, 0), parted(INSERT, 1, 0), parted(INSERT, 2, 0), parted(INSERT, 3, 0), parted(INSERT, 4, 0))
          .send(parted(UPDATE_AFTER, 0, 1), parted(DELETE, 1, 0), parted(UPDATE_AFTER, 2, 1), parted(UPDATE_AFTER, 2, 2));
      w.api("repartition", t -> t.updateSpec().removeField("ts_day").addField(org.apache.iceberg.expressions.Expressions.hour("ts")).removeField("s_trunc_2").commit());
      w.send(parted(INSERT, 5, 0), parted(UPDATE_AFTER, 5, 1), parted(INSERT, 6, 0)).send(parted(DELETE, 6, 0), parted(UPDATE_AFTER, 5, 2)).done();
    });
    // A table whose columns change between appends, overwrites and upserts.
    make("evolved", () -> {
      Written w = new Written("evolved", "id INT NOT NULL, k INT, f FLOAT, d DECIMAL(9, 2), s STRING, st ROW<p INT, q STRING>" + key, "", "format-version", "2", "write.upsert.enabled", "true");
      w.send(row(INSERT, 1, 1, 1.5f, dec("1.25"), "a", Row.of(1, "q")), row(INSERT, 2, 2, 2.5f, null, "b", null));
      w.api("widen", t -> t.updateSchema().updateColumn("k", Types.LongType.get()).updateColumn("f", Types.DoubleType.get()).updateColumn("d", Types.DecimalType.of(30, 2)).updateColumn("st.p", Types.LongType.get()).commit());
      w.send(row(UPDATE_AFTER, 1, 5_000_000_000L, 0.1, dec("1234567890123456789012345678.25"), "a2", Row.of(5_000_000_000L, "q2")));
      w.api("rename", t -> t.updateSchema().renameColumn("s", "k_").renameColumn("st.q", "r").deleteColumn("f").commit());
      w.api("another", t -> t.updateSchema().addColumn("st", "q", Types.StringType.get()).commit());
      w.send(row(UPDATE_AFTER, 2, 2L, dec("0.10"), "b2", Row.of(1L, "r", "q")), row(INSERT, 3, 3L, null, null, null));
      w.api("again", t -> t.updateSchema().addColumn("f", Types.StringType.get()).moveFirst("f").commit());
      w.send(row(UPDATE_AFTER, "f", 3, 4L, null, null, null), row(INSERT, null, 4, null, null, "x", null));
      w.api("rename key", t -> t.updateSchema().renameColumn("id", "ident").commit());
      w.send(row(DELETE, null, 1, null, null, null, null), row(UPDATE_AFTER, "g", 4, null, null, "y", null)).done();
    });
    make("batches", () -> new Written("batches", "id INT, p STRING, dt DATE, v ARRAY<INT>", "PARTITIONED BY (p, dt)", "format-version", "2", "write.metadata.compression-codec", "gzip", "write.parquet.compression-codec", "gzip", "write.distribution-mode", "hash")
        .sql("INSERT INTO $T VALUES (1, 'a', DATE '1969-12-31', ARRAY[1, 2]), (2, 'a', CAST(NULL AS DATE), CAST(NULL AS ARRAY<INT>)), (3, CAST(NULL AS STRING), DATE '2024-02-29', ARRAY[3]), (4, 'ü/=%', DATE '2024-02-29', ARRAY[4])")
        .sql("INSERT OVERWRITE $T VALUES (5, 'a', DATE '1969-12-31', ARRAY[5])")
        .sql("INSERT OVERWRITE $T PARTITION (p = 'a') SELECT 6, DATE '1970-01-01', ARRAY[6]")
        .sql("INSERT INTO $T SELECT id + 10, p, dt, v FROM $T")
        .done());
    Files.createDirectories(OUT);
    Files.writeString(OUT.resolve("cases.json"), "[\n" + String.join(",\n", cases) + "\n]\n");
    Files.writeString(OUT.resolve("roots"), String.join("\n", roots) + "\n");
    System.exit(0);
  }

  static Row[] stream(int n) {
    Row[] out = new Row[n];
    for (int i = 0; i < n; i++) {
      int id = (i * 7) % 11;
      out[i] = row(i % 6 == 5 ? DELETE : UPDATE_AFTER, id, "p" + id % 2, (long) i);
    }
    return out;
  }

  static Row keyed(RowKind kind, int i, int v) {
    Object[] t = typed(i);
    return row(kind, t[8], t[5], t[6], t[7], t[11], t[12], t[13], t[14], t[1], t[2], v);
  }

  static Row parted(RowKind kind, int i, int v) {
    return row(kind, i, LocalDateTime.of(1969, 12, 31, 22, 30).plusHours(i * 5L), "é日" + i, dec(i + ".25"), v);
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// Makes ../testdata/java: tables that Iceberg's Java library wrote through Nessie's catalog, where engines leave its less
// usual parts alone, as one archive of the objects of their bucket, and cases.json with the rows that it reads itself
// after each step. And ../testdata/parquet_java: one Parquet file a case, as parquet-java encodes it.
//
//     mvn -f java.xml org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DoutputDirectory=lib
//     export NESSIE=http://127.0.0.1:19120 S3=http://127.0.0.1:9000 OUT=../testdata    # bucket "bucket", key k, secret s
//     java -cp 'lib/*' JavaTables.java && python pack.py $OUT/java    # a Java of 17

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.iceberg.*;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.GenericAppenderFactory;
import org.apache.iceberg.deletes.*;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.EncryptionKeyMetadata;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.io.*;
import org.apache.iceberg.nessie.NessieCatalog;
import org.apache.iceberg.parquet.ParquetSchemaUtil;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.types.Types.NestedField;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.data.parquet.GenericParquetReaders;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import static org.apache.iceberg.types.Types.NestedField.optional;
import static org.apache.iceberg.types.Types.NestedField.required;

public class JavaTables {
  static final String NESSIE = System.getenv("NESSIE"), S3 = System.getenv("S3"), ONLY = System.getenv().getOrDefault("ONLY", "");
  static final Path OUT = Path.of(System.getenv("OUT"));
  static NessieCatalog catalog;
  static final List<String> cases = new ArrayList<>(), files = new ArrayList<>(), roots = new ArrayList<>();

  interface Doing { void on(Written w) throws Exception; }

  static class Written {
    final String name;
    Table t;
    final List<String> steps = new ArrayList<>();
    String refused = ""; // what of a step we do not read; "": nothing

    Written(String name, Schema schema, PartitionSpec spec, String... properties) {
      this.name = name;
      Map<String, String> p = new HashMap<>();
      for (int i = 0; i < properties.length; i += 2) p.put(properties[i], properties[i + 1]);
      TableIdentifier id = TableIdentifier.of("writers", name);
      catalog.dropTable(id, false);
      t = catalog.createTable(id, schema, spec, p);
    }

    Written step(String what, Doing d) throws Exception {
      d.on(this);
      t.refresh();
      if (t.currentSnapshot() == null) return this;
      List<String> rows = new ArrayList<>();
      try (CloseableIterable<Record> read = IcebergGenerics.read(t).build()) {
        for (Record r : read) rows.add(json(r, t.schema().asStruct()));
      } catch (Exception e) {
        System.out.println("UNREADABLE to Java: " + name + " " + what + ": " + e);
      }
      String file = ((BaseTable) t).operations().current().metadataFileLocation();
      steps.add("{\"statement\": " + quoted(what) + ", \"metadata\": " + quoted(file) + ", \"rows\": [" + (refused.isEmpty() ? String.join(", ", rows) : "") + "]" + (refused.isEmpty() ? "" : ", \"refused\": " + quoted(refused)) + "}");
      return this;
    }

    /** A data file in a format, of a partition that the rows are all of. */
    DataFile data(FileFormat format, List<Record> rows) throws Exception {
      OutputFile out = t.io().newOutputFile(t.locationProvider().newDataLocation(UUID.randomUUID() + "." + format.name().toLowerCase()));
      GenericAppenderFactory f = new GenericAppenderFactory(t, t.schema(), t.spec(), t.properties(), null, null, null);
      DataWriter<Record> w = f.newDataWriter(EncryptedFiles.encryptedOutput(out, EncryptionKeyMetadata.EMPTY), format, key(rows.get(0)));
      for (Record r : rows) w.write(r);
      w.close();
      return w.toDataFile();
    }

    StructLike key(Record r) {
      if (t.spec().isUnpartitioned()) return null;
      PartitionKey k = new PartitionKey(t.spec(), t.schema());
      k.partition(new org.apache.iceberg.data.InternalRecordWrapper(t.schema().asStruct()).wrap(r));
      return k.copy();
    }

    void append(Record... rows) throws Exception {
      AppendFiles a = t.newAppend();
      Map<String, List<Record>> parts = new TreeMap<>();
      for (Record r : rows) parts.computeIfAbsent(t.spec().isUnpartitioned() ? "" : t.spec().partitionToPath(key(r)), k -> new ArrayList<>()).add(r);
      for (List<Record> p : parts.values()) a.appendFile(data(FileFormat.PARQUET, p));
      a.commit();
    }

    /** An equality delete file; where global, of the specification without fields. */
    DeleteFile equality(FileFormat format, StructLike part, PartitionSpec spec, List<String> columns, Object[]... keys) throws Exception {
      Schema s = t.schema().select(columns);
      int[] ids = new int[columns.size()];
      for (int i = 0; i < ids.length; i++) ids[i] = t.schema().findField(columns.get(i)).fieldId();
      OutputFile out = t.io().newOutputFile(t.locationProvider().newDataLocation("eq-" + UUID.randomUUID() + "." + format.name().toLowerCase()));
      GenericAppenderFactory f = new GenericAppenderFactory(t, t.schema(), spec, t.properties(), ids, s, null);
      EqualityDeleteWriter<Record> w = f.newEqDeleteWriter(EncryptedFiles.encryptedOutput(out, EncryptionKeyMetadata.EMPTY), format, part);
      for (Object[] k : keys) w.write(record(s.asStruct(), k));
      w.close();
      return w.toDeleteFile();
    }

    /** A position delete file, with the deleted rows in it where they are given. */
    DeleteFile positions(FileFormat format, StructLike part, List<String> paths, long... positions) throws Exception {
      OutputFile out = t.io().newOutputFile(t.locationProvider().newDataLocation("pos-" + UUID.randomUUID() + "." + format.name().toLowerCase()));
      GenericAppenderFactory f = new GenericAppenderFactory(t, t.schema(), t.spec(), t.properties(), null, null, null);
      PositionDeleteWriter<Record> w = f.newPosDeleteWriter(EncryptedFiles.encryptedOutput(out, EncryptionKeyMetadata.EMPTY), format, part);
      for (String p : paths) for (long at : positions) w.write(PositionDelete.<Record>create().set(p, at));
      w.close();
      return w.toDeleteFile();
    }

    List<DataFile> live() throws Exception {
      t.refresh();
      List<DataFile> out = new ArrayList<>();
      try (CloseableIterable<FileScanTask> tasks = t.newScan().planFiles()) {
        for (FileScanTask k : tasks) out.add(k.file().copy());
      }
      out.sort((a, b) -> Long.compare(a.fileSequenceNumber() == null ? 0 : a.fileSequenceNumber(), b.fileSequenceNumber() == null ? 0 : b.fileSequenceNumber()));
      return out;
    }

    void done() {
      cases.add("{\"name\": " + quoted(name) + ", \"steps\": [\n " + String.join(",\n ", steps) + "]}");
      roots.add(t.location());
      System.out.println("made " + name + ": " + steps.size() + " steps");
    }
  }

  interface Making { void make() throws Exception; }

  static void make(String name, Making m) {
    if (!ONLY.isEmpty() && !List.of(ONLY.split(",")).contains(name)) return;
    try {
      m.make();
    } catch (Throwable e) {
      System.out.println("FAILED " + name);
      e.printStackTrace(System.out);
    }
  }

  static Record record(Types.StructType s, Object... values) {
    GenericRecord r = GenericRecord.create(s);
    for (int i = 0; i < values.length; i++) {
      Type t = s.fields().get(i).type();
      r.set(i, t.isStructType() && values[i] instanceof Object[] ? record(t.asStructType(), (Object[]) values[i]) : values[i]);
    }
    return r;
  }

  static String quoted(String s) {
    StringBuilder b = new StringBuilder("\"");
    for (char c : s.toCharArray()) b.append(c == '"' || c == '\\' ? "\\" + c : c < 32 ? String.format("\\u%04x", (int) c) : String.valueOf(c));
    return b.append('"').toString();
  }

  static String number(double v, String text) {
    return Double.isNaN(v) ? "\"NaN\"" : Double.isInfinite(v) ? (v > 0 ? "\"Infinity\"" : "\"-Infinity\"") : text;
  }

  static String hex(ByteBuffer b) {
    StringBuilder out = new StringBuilder();
    b = b.duplicate();
    while (b.hasRemaining()) out.append(String.format("%02x", b.get()));
    return out.toString();
  }

  static String json(Object v, Type t) {
    if (v == null) return "null";
    switch (t.typeId()) {
      case FLOAT: return number((Float) v, v.toString());
      case DOUBLE: return number((Double) v, v.toString());
      case BOOLEAN: case INTEGER: case LONG: return v.toString();
      case STRING: case DATE: case UUID: return quoted(v.toString());
      case DECIMAL: return quoted(((BigDecimal) v).toPlainString());
      case BINARY: return quoted(hex((ByteBuffer) v));
      case FIXED: return quoted(hex(ByteBuffer.wrap((byte[]) v)));
      case TIME: return quoted(((LocalTime) v).format(DateTimeFormatter.ofPattern("HH:mm:ss.SSSSSS")));
      case TIMESTAMP: case TIMESTAMP_NANO: {
        boolean zone = v instanceof OffsetDateTime;
        LocalDateTime at = zone ? ((OffsetDateTime) v).atZoneSameInstant(ZoneOffset.UTC).toLocalDateTime() : (LocalDateTime) v;
        return quoted(at.format(DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss." + (t.typeId() == Type.TypeID.TIMESTAMP ? "SSSSSS" : "SSSSSSSSS"))) + (zone ? "+00:00" : ""));
      }
      case LIST: {
        List<String> out = new ArrayList<>();
        for (Object e : (List<?>) v) out.add(json(e, t.asListType().elementType()));
        return "[" + String.join(", ", out) + "]";
      }
      case MAP: {
        Types.MapType m = t.asMapType();
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
        for (NestedField f : t.asStructType().fields()) out.add(quoted(f.name()) + ": " + json(((StructLike) v).get(i++, Object.class), f.type()));
        return "{" + String.join(", ", out) + "}";
      }
      default: throw new IllegalArgumentException(t.toString());
    }
  }

  static final Schema TYPED = new Schema(
      required(1, "id", Types.IntegerType.get()), optional(2, "b", Types.BooleanType.get()), optional(3, "l", Types.LongType.get()), optional(4, "f", Types.FloatType.get()),
      optional(5, "d", Types.DoubleType.get()), optional(6, "d9", Types.DecimalType.of(9, 2)), optional(7, "d18", Types.DecimalType.of(18, 3)), optional(8, "d38", Types.DecimalType.of(38, 10)),
      optional(9, "s", Types.StringType.get()), optional(10, "y", Types.BinaryType.get()), optional(11, "x", Types.FixedType.ofLength(3)), optional(12, "u", Types.UUIDType.get()),
      optional(13, "dt", Types.DateType.get()), optional(14, "tm", Types.TimeType.get()), optional(15, "ts", Types.TimestampType.withoutZone()), optional(16, "tz", Types.TimestampType.withZone()),
      optional(17, "a", Types.ListType.ofOptional(18, Types.StructType.of(optional(19, "p", Types.IntegerType.get()), optional(20, "q", Types.ListType.ofOptional(21, Types.StringType.get()))))),
      optional(22, "m", Types.MapType.ofOptional(23, 24, Types.StringType.get(), Types.DecimalType.of(20, 2))),
      optional(25, "mi", Types.MapType.ofRequired(26, 27, Types.IntegerType.get(), Types.StructType.of(optional(28, "r", Types.DateType.get())))),
      optional(29, "st", Types.StructType.of(optional(30, "u", Types.StructType.of(optional(31, "v", Types.TimestampType.withoutZone()), optional(32, "w", Types.UUIDType.get()))), optional(33, "z", Types.StringType.get()))));

  static Record typed(int i) {
    GenericRecord r = GenericRecord.create(TYPED);
    r.set(0, i);
    if (i % 9 == 7) return r;
    LocalDateTime t = LocalDateTime.of(1969, 12, 31, 23, 59, 59, 999_999_000).plusNanos(i * 123_456_789_000L * 100);
    UUID u = new UUID(0x0011223344556677L * (i + 1), 0x8899aabbccddeeffL + i);
    Types.StructType a = TYPED.findType("a").asListType().elementType().asStructType(), mi = TYPED.findType("mi").asMapType().valueType().asStructType();
    Map<String, Object> m = new TreeMap<>();
    m.put("k" + i % 3, new BigDecimal("-" + i + ".50"));
    if (i % 2 == 0) m.put("n", null);
    Map<Integer, Object> numbers = new TreeMap<>();
    for (int k = 0; k < i % 3; k++) numbers.put(k, record(mi, k == 1 ? null : LocalDate.of(1900 + i, 2, 28)));
    List<Object> list = new ArrayList<>();
    for (int k = 0; k < i % 5; k++) list.add(k == 3 ? null : record(a, k, k == 2 ? null : Arrays.asList("x" + k, null, "é")));
    Object[] v = {i, i % 7 == 0 ? null : i % 3 != 0, Long.MAX_VALUE - i * 1_000_003L, i / 3f, i % 5 == 2 ? Double.NaN : i / 7.0, new BigDecimal("-1234567.8" + i % 10), i % 11 == 3 ? null : new BigDecimal("123456789012345.67" + i % 10),
        new BigDecimal("-1234567890123456789012345678.012345678" + i % 10), i % 4 == 2 ? "" : "prefix-" + i / 3 + "-s\"é日\n" + i, ByteBuffer.wrap(new byte[] {0, -1, (byte) i}), new byte[] {(byte) i, -128, 1}, u,
        LocalDate.of(1969, 12, 25).plusDays(i * 40L), LocalTime.of(i % 24, 59, 58, 123_456_000), t, t.atOffset(ZoneOffset.UTC), i % 6 == 1 ? null : list, i % 8 == 3 ? null : m, i % 8 == 5 ? null : numbers,
        i % 10 == 4 ? null : new Object[] {i % 4 == 2 ? null : new Object[] {t, u}, "z" + i}};
    return record(TYPED.asStruct(), v);
  }

  /** A value as a field of parquet-java's own example model. */
  static void add(Group g, int at, Object v, Type t) {
    if (v == null) return;
    switch (t.typeId()) {
      case BOOLEAN: g.add(at, (Boolean) v); return;
      case INTEGER: g.add(at, (Integer) v); return;
      case LONG: g.add(at, (Long) v); return;
      case FLOAT: g.add(at, (Float) v); return;
      case DOUBLE: g.add(at, (Double) v); return;
      case STRING: g.add(at, (String) v); return;
      case DATE: g.add(at, (int) ((LocalDate) v).toEpochDay()); return;
      case TIME: g.add(at, ((LocalTime) v).toNanoOfDay() / 1000); return;
      case TIMESTAMP: {
        LocalDateTime l = v instanceof OffsetDateTime ? ((OffsetDateTime) v).toLocalDateTime() : (LocalDateTime) v;
        g.add(at, l.toEpochSecond(ZoneOffset.UTC) * 1_000_000 + l.getNano() / 1000);
        return;
      }
      case BINARY: g.add(at, Binary.fromConstantByteBuffer((ByteBuffer) v)); return;
      case FIXED: g.add(at, Binary.fromConstantByteArray((byte[]) v)); return;
      case UUID: g.add(at, Binary.fromConstantByteArray(ByteBuffer.allocate(16).putLong(((UUID) v).getMostSignificantBits()).putLong(((UUID) v).getLeastSignificantBits()).array())); return;
      case DECIMAL: {
        Types.DecimalType d = (Types.DecimalType) t;
        java.math.BigInteger n = ((BigDecimal) v).unscaledValue();
        if (d.precision() <= 9) g.add(at, n.intValueExact());
        else if (d.precision() <= 18) g.add(at, n.longValueExact());
        else {
          int size = org.apache.iceberg.types.TypeUtil.decimalRequiredBytes(d.precision());
          byte[] out = new byte[size], from = n.toByteArray();
          Arrays.fill(out, (byte) (n.signum() < 0 ? -1 : 0));
          System.arraycopy(from, 0, out, size - from.length, from.length);
          g.add(at, Binary.fromConstantByteArray(out));
        }
        return;
      }
      case STRUCT: fill(g.addGroup(at), (StructLike) v, t.asStructType()); return;
      case LIST: {
        Group l = g.addGroup(at);
        for (Object e : (List<?>) v) add(l.addGroup(0), 0, e, t.asListType().elementType());
        return;
      }
      case MAP: {
        Group l = g.addGroup(at);
        for (Map.Entry<?, ?> e : ((Map<?, ?>) v).entrySet()) {
          Group kv = l.addGroup(0);
          add(kv, 0, e.getKey(), t.asMapType().keyType());
          add(kv, 1, e.getValue(), t.asMapType().valueType());
        }
        return;
      }
      default: throw new IllegalArgumentException(t.toString());
    }
  }

  static void fill(Group g, StructLike r, Types.StructType s) {
    for (int i = 0; i < s.fields().size(); i++) add(g, i, r.get(i, Object.class), s.fields().get(i).type());
  }

  interface Setting { void on(ExampleParquetWriter.Builder b); }

  static void file(String name, int n, Setting s) {
    make("parquet", () -> {
      MessageType type = ParquetSchemaUtil.convert(TYPED, "table");
      Path path = OUT.resolve("parquet_java/" + name + ".parquet");
      Files.deleteIfExists(path);
      ExampleParquetWriter.Builder b = ExampleParquetWriter.builder(new LocalOutputFile(path)).withType(type);
      s.on(b);
      List<String> rows = new ArrayList<>();
      try (ParquetWriter<Group> w = b.build()) {
        for (int i = 0; i < n; i++) {
          Group g = new SimpleGroup(type);
          fill(g, typed(i), TYPED.asStruct());
          w.write(g);
        }
      }
      try (CloseableIterable<Record> read = org.apache.iceberg.parquet.Parquet.read(org.apache.iceberg.Files.localInput(path.toFile())).project(TYPED)
          .createReaderFunc(m -> GenericParquetReaders.buildReader(TYPED, m)).build()) {
        for (Record r : read) rows.add(json(r, TYPED.asStruct()));
      }
      String want = "[" + String.join(",\n ", rows) + "]", same = "";
      for (String[] other : wants) if (other[1].equals(want)) { same = other[0]; break; }
      wants.add(new String[] {name, want});
      String fields = SchemaParser.toJson(TYPED);
      files.add("{\"name\": " + quoted(name) + ", \"format\": 2, \"fields\": " + fields.substring(fields.indexOf("\"fields\":") + 9, fields.length() - 1) + ", \"rows\": " + n + ", \"mapping\": null, \"want\": " + (same.isEmpty() && refused.isEmpty() ? want : "null") + ", \"want_of\": " + quoted(same) + ", \"refused\": " + quoted(refused) + "}");
    });
  }

  static String refused = ""; // part of our error for the files that come; "": they are read
  static final List<String[]> wants = new ArrayList<>();
  static final ParquetProperties.WriterVersion V1 = ParquetProperties.WriterVersion.PARQUET_1_0, V2 = ParquetProperties.WriterVersion.PARQUET_2_0;

  static ExampleParquetWriter.Builder small(ExampleParquetWriter.Builder b) {
    return b.withPageSize(200).withPageRowCountLimit(9).withMinRowCountForPageSizeCheck(3).withMaxRowCountForPageSizeCheck(5);
  }

  static ExampleParquetWriter.Builder fixed(ExampleParquetWriter.Builder b) {
    for (String column : List.of("d38", "x", "u", "m.key_value.value", "st.u.w")) b.withByteStreamSplitEncoding(column, true);
    return b;
  }

  static ExampleParquetWriter.Builder split(ExampleParquetWriter.Builder b) {
    for (String column : List.of("id", "l", "f", "d", "d9", "d18", "d38", "x", "u", "dt", "tm", "ts", "tz", "a.list.element.p", "m.key_value.value", "mi.key_value.key", "st.u.v", "st.u.w")) b.withByteStreamSplitEncoding(column, true);
    return b;
  }

  public static void main(String[] args) throws Exception {
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
    catalog = new NessieCatalog();
    catalog.setConf(new org.apache.hadoop.conf.Configuration());
    catalog.initialize("n", p);
    try {
      catalog.createNamespace(Namespace.of("writers"));
    } catch (org.apache.iceberg.exceptions.AlreadyExistsException e) {
      // of an earlier run
    }
    Files.createDirectories(OUT.resolve("parquet_java"));
    Files.createDirectories(OUT.resolve("java"));
    int n = 48;
    file("v1", n, b -> b.withWriterVersion(V1));
    file("v2", n, b -> b.withWriterVersion(V2));
    file("v1_pages", n, b -> small(b.withWriterVersion(V1).withCompressionCodec(CompressionCodecName.GZIP)));
    file("v2_pages", n, b -> small(b.withWriterVersion(V2).withCompressionCodec(CompressionCodecName.ZSTD).withPageWriteChecksumEnabled(true)));
    file("v1_no_dictionary", n, b -> small(b.withWriterVersion(V1).withDictionaryEncoding(false)));
    file("v2_no_dictionary", n, b -> small(b.withWriterVersion(V2).withDictionaryEncoding(false)).withCompressionCodec(CompressionCodecName.SNAPPY));
    file("v1_split", n, b -> split(small(b.withWriterVersion(V1).withDictionaryEncoding(false))));
    file("v2_split", n, b -> split(small(b.withWriterVersion(V2).withDictionaryEncoding(false))).withCompressionCodec(CompressionCodecName.LZ4_RAW));
    file("v1_dictionary_that_overflows", n, b -> small(b.withWriterVersion(V1).withDictionaryPageSize(100)));
    file("v2_dictionary_that_overflows", n, b -> fixed(small(b.withWriterVersion(V2).withDictionaryPageSize(100))));
    // arrow-go has no decoder for what the second version makes of values of a fixed length, and the way around that is
    // for columns that have no other encoding.
    refused = "values of a fixed length in DELTA_BYTE_ARRAY beside other encodings";
    file("v2_dictionary_of_fixed_lengths_that_overflows", n, b -> small(b.withWriterVersion(V2).withDictionaryPageSize(100)));
    refused = "";
    file("v2_row_groups", n, b -> small(b.withWriterVersion(V2).withRowGroupSize(4000L)).withBloomFilterEnabled(true).withMaxBloomFilterBytes(64).withCompressionCodec(CompressionCodecName.ZSTD));
    file("v1_row_groups_without_statistics", n, b -> small(b.withWriterVersion(V1).withRowGroupSize(4000L)).withStatisticsEnabled(false).withCompressionCodec(CompressionCodecName.UNCOMPRESSED));

    for (String version : new String[] {"2", "3"}) {
      String v = version;
      make("typed", () -> new Written("typed_v" + v, TYPED, PartitionSpec.unpartitioned(), "format-version", v, "write.parquet.page-row-limit", "5", "write.parquet.bloom-filter-enabled.column.s", "true")
          .step("append", w -> w.append(range(0, 12)))
          .step("delete where", w -> w.t.newDelete().deleteFile(w.live().get(0)).commit())
          .step("append", w -> w.append(range(12, 24)))
          .done());
    }
    // Equality deletes by every type, of several columns at once, and of fields inside structs.
    make("equality", () -> {
      Written w = new Written("equality_v2", TYPED, PartitionSpec.unpartitioned(), "format-version", "2");
      w.step("append", x -> x.append(range(0, 30)));
      int at = 1;
      for (String column : List.of("b", "l", "f", "d", "d9", "d18", "d38", "s", "y", "x", "u", "dt", "tm", "ts", "tz")) {
        int k = at;
          w.step("equality on " + column + ", id", x -> x.t.newRowDelta().addDeletes(x.equality(FileFormat.PARQUET, null, PartitionSpec.unpartitioned(), List.of("id", column), new Object[] {k, typed(k).getField(column)}, new Object[] {k + 1, typed(k).getField("b") == null ? null : typed(k).getField(column)})).commit());
        at += column.equals("s") ? 2 : 1;
      }
      w.step("equality on null d18", x -> x.t.newRowDelta().addDeletes(x.equality(FileFormat.PARQUET, null, PartitionSpec.unpartitioned(), List.of("d18"), new Object[] {null})).commit());
      w.step("equality on NaN", x -> x.t.newRowDelta().addDeletes(x.equality(FileFormat.PARQUET, null, PartitionSpec.unpartitioned(), List.of("d"), new Object[] {Double.NaN})).commit());
      w.step("append", x -> x.append(range(0, 6)));
      w.done();
    });
    // A field inside a struct as the key of an equality delete.
    make("nested_key", () -> {
      Written w = new Written("nested_key", TYPED, PartitionSpec.unpartitioned(), "format-version", "2");
      w.step("append", x -> x.append(range(0, 12)));
      w.step("equality on st.z", x -> x.t.newRowDelta().addDeletes(x.equality(FileFormat.PARQUET, null, PartitionSpec.unpartitioned(), List.of("st.z"), new Object[] {new Object[] {"z3"}}, new Object[] {new Object[] {"z5"}})).commit());
      w.step("equality on st.z, st.u.w and id", x -> x.t.newRowDelta().addDeletes(x.equality(FileFormat.PARQUET, null, PartitionSpec.unpartitioned(), List.of("st.z", "st.u.w", "id"), new Object[] {8, new Object[] {new Object[] {((StructLike) ((StructLike) typed(8).getField("st")).get(0, Object.class)).get(1, Object.class)}, "z8"}}, new Object[] {7, null})).commit());
      w.done();
    });
    Schema small = new Schema(required(1, "id", Types.IntegerType.get()), optional(2, "p", Types.StringType.get()), optional(3, "v", Types.LongType.get()));
    // Deletes of partitions, of all partitions, of several data files at once, and of a partition that other deletes are in as well.
    make("scopes", () -> {
      Written w = new Written("scopes", small, PartitionSpec.builderFor(small).identity("p").build(), "format-version", "2");
      w.step("append", x -> x.append(rec(small, 1, "a", 1L), rec(small, 2, "a", 2L), rec(small, 3, "b", 1L), rec(small, 4, "b", 2L), rec(small, 5, null, 1L), rec(small, 6, null, 3L)));
      w.step("equality in a", x -> x.t.newRowDelta().addDeletes(x.equality(FileFormat.PARQUET, x.key(rec(small, 0, "a", 0L)), x.t.spec(), List.of("v"), new Object[] {1L})).commit());
      w.step("equality in all", x -> x.t.newRowDelta().addDeletes(x.equality(FileFormat.PARQUET, null, PartitionSpec.unpartitioned(), List.of("v"), new Object[] {3L})).commit());
      w.step("equality in null", x -> x.t.newRowDelta().addDeletes(x.equality(FileFormat.PARQUET, x.key(rec(small, 0, null, 0L)), x.t.spec(), List.of("v", "id"), new Object[] {5, 1L}, new Object[] {4, 2L})).commit());
      w.step("append", x -> x.append(rec(small, 7, "a", 1L), rec(small, 8, "b", 1L), rec(small, 9, "b", 3L)));
      w.step("positions in b", x -> {
        List<String> paths = new ArrayList<>();
        for (DataFile f : x.live()) if ("b".equals(f.partition().get(0, String.class))) paths.add(f.location());
        java.util.Collections.sort(paths);
        x.t.newRowDelta().addDeletes(x.positions(FileFormat.PARQUET, x.key(rec(small, 0, "b", 0L)), paths, 0)).commit();
      });
      w.step("replace partition a", x -> x.t.newReplacePartitions().addFile(x.data(FileFormat.PARQUET, List.of(rec(small, 10, "a", 1L)))).commit());
      w.step("overwrite where p = b", x -> x.t.newOverwrite().overwriteByRowFilter(Expressions.equal("p", "b")).addFile(x.data(FileFormat.PARQUET, List.of(rec(small, 11, "b", 1L)))).commit());
      w.step("delete where p is null", x -> x.t.newDelete().deleteFromRowFilter(Expressions.isNull("p")).commit());
      w.done();
    });
    // Files of other formats beside Parquet: what Java reads and we refuse.
    for (String[] f : new String[][] {{"orc", "orc"}, {"avro", "avro"}, {"orc_deletes", "parquet"}, {"avro_deletes", "parquet"}})
      make("formats", () -> {
        Written w = new Written(f[0], small, PartitionSpec.unpartitioned(), "format-version", "2");
        String label = f[0].startsWith("orc") ? "ORC" : "Avro";
        boolean parquet = f[1].equals("parquet");
        if (!parquet) w.refused = label + " data file";
        FileFormat data = FileFormat.fromString(f[1]), deletes = FileFormat.fromString(f[0].replace("_deletes", ""));
        w.step("append", x -> x.t.newAppend().appendFile(x.data(data, List.of(rec(small, 1, "a", 1L), rec(small, 2, "b", null), rec(small, 3, "c", 3L)))).commit());
        if (parquet) w.refused = label + " delete file";
        w.step("equality", x -> x.t.newRowDelta().addDeletes(x.equality(deletes, null, PartitionSpec.unpartitioned(), List.of("id"), new Object[] {1})).commit());
        w.step("positions", x -> x.t.newRowDelta().addDeletes(x.positions(deletes, null, List.of(x.live().get(0).location()), 1)).commit());
        w.done();
      });
    // Version 1, then 2, then 3, with fields of the partition that leave it.
    make("upgraded", () -> {
      Written w = new Written("upgraded", small, PartitionSpec.builderFor(small).identity("p").bucket("id", 2).build(), "format-version", "1", "write.avro.compression-codec", "zstd", "write.manifest.compression-codec", "zstd");
      w.step("append", x -> x.append(rec(small, 1, "a", 1L), rec(small, 2, null, 2L), rec(small, 3, "b", 3L)));
      w.step("drop p from the partition", x -> x.t.updateSpec().removeField("p").commit());
      w.step("append", x -> x.append(rec(small, 4, "a", 4L), rec(small, 5, null, 5L)));
      w.step("version 2", x -> ((BaseTable) x.t).operations().commit(((BaseTable) x.t).operations().current(), ((BaseTable) x.t).operations().current().upgradeToFormatVersion(2)));
      w.step("equality in all", x -> x.t.newRowDelta().addDeletes(x.equality(FileFormat.PARQUET, null, x.t.specs().values().stream().filter(PartitionSpec::isUnpartitioned).findFirst().orElse(PartitionSpec.unpartitioned()), List.of("id"), new Object[] {2}, new Object[] {4})).commit());
      w.step("rewrite manifests", x -> x.t.rewriteManifests().clusterBy(d -> "").commit());
      w.step("version 3", x -> ((BaseTable) x.t).operations().commit(((BaseTable) x.t).operations().current(), ((BaseTable) x.t).operations().current().upgradeToFormatVersion(3)));
      w.step("append", x -> x.append(rec(small, 6, "c", 6L)));
      w.step("drop id from the partition", x -> x.t.updateSpec().removeField("id_bucket").commit());
      w.step("append", x -> x.append(rec(small, 7, "c", 7L)));
      w.step("delete the first", x -> x.t.newDelete().deleteFile(x.live().get(0)).commit());
      w.done();
    });
    // Every transform.
    make("transforms", () -> {
      for (String[] spec : new String[][] {{"bucket", "id,l,d9,d38,s,y,x,u,dt,tm,ts,tz"}, {"truncate", "id,l,d9,d38,s,y"}, {"identity", "id,b,l,d9,d38,s,y,u,dt,tm,ts,tz,st.z,st.u.w"}, {"time", "dt:month,ts:year,tz:hour,st.u.v:day"}}) {
        PartitionSpec.Builder b = PartitionSpec.builderFor(TYPED);
        int i = 0;
        for (String c : spec[1].split(",")) {
          String name = c.split(":")[0], as = "p " + (i++) + "/é" + name;
          switch (spec[0].equals("time") ? c.split(":")[1] : spec[0]) {
            case "bucket": b.bucket(name, 3, as); break;
            case "truncate": b.truncate(name, 4, as); break;
            case "identity": b.identity(name, as); break;
            case "year": b.year(name, as); break;
            case "month": b.month(name, as); break;
            case "day": b.day(name, as); break;
            case "hour": b.hour(name, as); break;
          }
        }
        Written w = new Written("by_" + spec[0], TYPED, b.build(), "format-version", "2", "write.object-storage.enabled", "true");
        w.step("append", x -> x.append(range(0, 8)));
        w.step("equality", x -> {
          RowDelta d = x.t.newRowDelta();
          for (int k : new int[] {1, 3, 7}) d.addDeletes(x.equality(FileFormat.PARQUET, x.key(typed(k)), x.t.spec(), List.of("id"), new Object[] {k}));
          d.commit();
        });
        w.step("delete two files", x -> x.t.newDelete().deleteFile(x.live().get(0)).deleteFile(x.live().get(1)).commit());
        w.done();
      }
    });
    // Columns that change, with every promotion, inside structs, lists and maps.
    make("evolved", () -> {
      Schema s = new Schema(required(1, "id", Types.IntegerType.get()), optional(2, "i", Types.IntegerType.get()), optional(3, "f", Types.FloatType.get()), optional(4, "d", Types.DecimalType.of(9, 2)),
          optional(5, "a", Types.ListType.ofOptional(6, Types.IntegerType.get())), optional(7, "m", Types.MapType.ofOptional(8, 9, Types.IntegerType.get(), Types.FloatType.get())),
          optional(10, "st", Types.StructType.of(optional(11, "x", Types.IntegerType.get()), optional(12, "y", Types.ListType.ofOptional(13, Types.StructType.of(optional(14, "z", Types.DecimalType.of(5, 1))))))));
      Written w = new Written("evolved", s, PartitionSpec.builderFor(s).identity("i").build(), "format-version", "2");
      w.step("append", x -> x.append(evolving(x.t.schema(), 1), evolving(x.t.schema(), 2)));
      w.step("widen", x -> x.t.updateSchema().updateColumn("i", Types.LongType.get()).updateColumn("f", Types.DoubleType.get()).updateColumn("d", Types.DecimalType.of(38, 2)).updateColumn("a.element", Types.LongType.get())
          .updateColumn("m.value", Types.DoubleType.get()).updateColumn("st.x", Types.LongType.get()).updateColumn("st.y.element.z", Types.DecimalType.of(20, 1)).commit());
      w.step("append", x -> x.append(evolving(x.t.schema(), 3)));
      w.step("equality", x -> x.t.newRowDelta().addDeletes(x.equality(FileFormat.PARQUET, null, PartitionSpec.unpartitioned(), List.of("i", "d"), new Object[] {2L, new BigDecimal("2.25")})).commit());
      w.step("columns inside", x -> x.t.updateSchema().addColumn("st.y.element", "n", Types.StringType.get()).renameColumn("st.y.element.z", "zz").deleteColumn("st.x").addColumn("st", "u", Types.UUIDType.get()).moveFirst("st.u").makeColumnOptional("id").commit());
      w.step("append", x -> {
        GenericRecord r = GenericRecord.create(x.t.schema());
        r.setField("i", 9L);
        Types.StructType st = x.t.schema().findType("st").asStructType(), e = st.fieldType("y").asListType().elementType().asStructType();
        Record inside = GenericRecord.create(st), element = GenericRecord.create(e);
        element.setField("n", "new");
        element.setField("zz", new BigDecimal("-1.5"));
        inside.setField("y", Arrays.asList(element, null));
        inside.setField("u", new UUID(1, 2));
        r.setField("st", inside);
        x.append(r);
      });
      w.step("again", x -> x.t.updateSchema().addColumn("st", "x", Types.StringType.get()).deleteColumn("f").commit());
      w.step("again", x -> x.t.updateSchema().addColumn("f", Types.StringType.get()).commit());
      w.step("append", x -> { GenericRecord r = GenericRecord.create(x.t.schema()); r.setField("f", "text"); x.append(r); });
      w.done();
    });
    // Version 3's own: defaults, nanoseconds, columns of no type, deletion vectors.
    make("third", () -> {
      Schema s = new Schema(required(1, "id", Types.IntegerType.get()), optional(2, "n", Types.TimestampNanoType.withoutZone()), optional(3, "z", Types.TimestampNanoType.withZone()), optional(4, "st", Types.StructType.of(optional(5, "q", Types.IntegerType.get()))));
      Written w = new Written("third", s, PartitionSpec.builderFor(s).day("n").hour("z").build(), "format-version", "3");
      w.step("append", x -> { List<Record> r = new ArrayList<>(); for (int i = 0; i < 6; i++) r.add(nano(x.t.schema(), i % 3 == 2 ? null : i / 3, i)); x.append(r.toArray(new Record[0])); });
      w.step("defaults", x -> {
        UpdateSchema u = x.t.updateSchema();
        u.addColumn("e", Types.LongType.get(), "doc", Literal.of(7L)).addColumn("t", Types.StringType.get(), null, Literal.of("dé\"")).addColumn("dec", Types.DecimalType.of(9, 2), null, Literal.of(new BigDecimal("1.25")))
            .addColumn("dt", Types.DateType.get(), null, Literal.of("2024-02-29").to(Types.DateType.get())).addColumn("ts", Types.TimestampNanoType.withZone(), null, Literal.of("2024-02-29T12:00:00.123456789+00:00").to(Types.TimestampNanoType.withZone()))
            .addColumn("uu", Types.UUIDType.get(), null, Literal.of("00112233-4455-6677-8899-aabbccddeeff").to(Types.UUIDType.get())).addColumn("bin", Types.BinaryType.get(), null, Literal.of(ByteBuffer.wrap(new byte[] {1, -1})))
            .addColumn("fl", Types.FloatType.get(), null, Literal.of(1.5f)).addColumn("bo", Types.BooleanType.get(), null, Literal.of(true)).addColumn("st", "w", Types.IntegerType.get(), null, Literal.of(3)).commit();
      });
      w.step("write default", x -> x.t.updateSchema().updateColumnDefault("e", Literal.of(8L)).commit());
      w.step("append", x -> { Record r = nano(x.t.schema(), 1, 3); r.setField("id", 50); x.append(r); });
      w.step("equality on a default", x -> x.t.newRowDelta().addDeletes(x.equality(FileFormat.PARQUET, null, PartitionSpec.unpartitioned(), List.of("e", "id"), new Object[] {1, 7L}, new Object[] {50, 7L}, new Object[] {2, null})).commit());
      w.step("vectors", x -> {
        OutputFileFactory f = OutputFileFactory.builderFor(x.t, 1, 1).format(FileFormat.PUFFIN).build();
        BaseDVFileWriter dv = new BaseDVFileWriter(f, path -> null);
        for (DataFile d : x.live()) if (d.recordCount() > 1) dv.delete(d.location(), 1, x.t.specs().get(d.specId()), d.partition());
        dv.close();
        RowDelta delta = x.t.newRowDelta();
        for (DeleteFile d : dv.result().deleteFiles()) delta.addDeletes(d);
        delta.commit();
      });
      w.done();
    });
    if (!files.isEmpty()) Files.writeString(OUT.resolve("parquet_java/cases.json"), "[\n" + String.join(",\n", files) + "\n]\n");
    Files.writeString(OUT.resolve("java/cases.json"), "[\n" + String.join(",\n", cases) + "\n]\n");
    Files.writeString(OUT.resolve("java/roots"), String.join("\n", roots) + "\n");
    System.exit(0);
  }

  static Record nano(Schema s, Integer days, int i) {
    GenericRecord r = GenericRecord.create(s);
    r.setField("id", i);
    if (days != null) {
      LocalDateTime t = LocalDateTime.of(1969, 12, 31, 23, 59, 59, 999_999_999).plusDays(days).plusNanos(i);
      r.setField("n", t);
      r.setField("z", t.atOffset(ZoneOffset.UTC));
    }
    if (i % 2 == 1) {
      Record st = GenericRecord.create(s.findType("st").asStructType());
      st.setField("q", i);
      r.setField("st", st);
    }
    return r;
  }

  static Record rec(Schema s, Object... v) {
    return record(s.asStruct(), v);
  }

  static Record[] range(int from, int to) {
    Record[] out = new Record[to - from];
    for (int i = from; i < to; i++) out[i - from] = typed(i);
    return out;
  }

  static Object as(Type t, int v) {
    switch (t.typeId()) {
      case INTEGER: return v;
      case LONG: return v < 3 ? v : v * 1_000_000_000_000L;
      case FLOAT: return v * 0.1f;
      case DOUBLE: return v * 0.1;
      case DECIMAL: return new BigDecimal(v + (((Types.DecimalType) t).scale() == 1 ? ".5" : ".25"));
      default: throw new IllegalArgumentException(t.toString());
    }
  }

  static Record evolving(Schema s, int v) {
    GenericRecord r = GenericRecord.create(s);
    for (String c : List.of("i", "f", "d")) r.setField(c, as(s.findType(c), v));
    r.setField("id", v);
    r.setField("a", Arrays.asList(as(s.findType("a.element"), v), null));
    Map<Integer, Object> m = new TreeMap<>();
    m.put(v, as(s.findType("m.value"), v));
    m.put(v + 1, null);
    r.setField("m", m);
    Types.StructType st = s.findType("st").asStructType(), e = st.fieldType("y").asListType().elementType().asStructType();
    Record element = record(e, as(e.fieldType("z"), v));
    r.setField("st", record(st, as(st.fieldType("x"), v), Arrays.asList(element, null)));
    return r;
  }
}

import com.google.api.gax.core.NoCredentialsProvider;
import com.google.api.gax.grpc.InstantiatingGrpcChannelProvider;
import com.google.cloud.bigquery.storage.v1.ArrowSerializationOptions;
import com.google.cloud.bigquery.storage.v1.AvroSchema;
import com.google.cloud.bigquery.storage.v1.BigQueryReadClient;
import com.google.cloud.bigquery.storage.v1.BigQueryReadSettings;
import com.google.cloud.bigquery.storage.v1.DataFormat;
import com.google.cloud.bigquery.storage.v1.ReadRowsRequest;
import com.google.cloud.bigquery.storage.v1.ReadRowsResponse;
import com.google.cloud.bigquery.storage.v1.ReadSession;
import com.google.cloud.bigquery.storage.v1.ReadStream;
import io.grpc.ManagedChannelBuilder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ReadChannel;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.util.ByteArrayReadableSeekableByteChannel;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;

/**
 * ReadJava ENDPOINT TABLE FORMAT COMPRESSION STREAMS TIMES: reads a table once to warm up and then TIMES times with Google's Java client, and prints what the
 * TIMES cost, as JSON. Arrow messages become Arrow's vectors, Avro messages generic records. Each stream has a thread and a connection of its own.
 */
public final class ReadJava {
  private record Work(long rows, long bytes) {
    Work plus(Work other) {
      return new Work(rows + other.rows, bytes + other.bytes);
    }
  }

  /** Of the whole process, as the kernel counts it. */
  private record Usage(double user, double system, long minorFaults) {
    static Usage now() throws IOException {
      String stat = Files.readString(Path.of("/proc/self/stat"));
      String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
      double tick = 100;  // sysconf(_SC_CLK_TCK) on Linux
      return new Usage(Long.parseLong(fields[11]) / tick, Long.parseLong(fields[12]) / tick, Long.parseLong(fields[7]));
    }
  }

  private static BigQueryReadClient connect(String endpoint) throws IOException {
    return BigQueryReadClient.create(
        BigQueryReadSettings.newBuilder()
            .setCredentialsProvider(NoCredentialsProvider.create())
            .setTransportChannelProvider(
                InstantiatingGrpcChannelProvider.newBuilder()
                    .setEndpoint(endpoint)
                    .setMaxInboundMessageSize(1 << 30)
                    .setChannelConfigurator(ManagedChannelBuilder::usePlaintext)
                    .build())
            .build());
  }

  private static Work readArrow(BigQueryReadClient client, ReadSession session, String stream) throws IOException {
    var schema =
        MessageSerializer.deserializeSchema(
            new ReadChannel(new ByteArrayReadableSeekableByteChannel(session.getArrowSchema().getSerializedSchema().toByteArray())));
    Work all = new Work(0, 0);
    try (BufferAllocator allocator = new RootAllocator();
        VectorSchemaRoot root = VectorSchemaRoot.create(schema, allocator)) {
      VectorLoader loader = new VectorLoader(root);
      for (ReadRowsResponse response : client.readRowsCallable().call(ReadRowsRequest.newBuilder().setReadStream(stream).build())) {
        byte[] bytes = response.getArrowRecordBatch().getSerializedRecordBatch().toByteArray();
        try (ArrowRecordBatch batch =
            MessageSerializer.deserializeRecordBatch(new ReadChannel(new ByteArrayReadableSeekableByteChannel(bytes)), allocator)) {
          loader.load(batch);
        }
        long size = 0;
        for (FieldVector vector : root.getFieldVectors()) size += vector.getBufferSize();
        all = all.plus(new Work(root.getRowCount(), size));
        root.clear();
      }
    }
    return all;
  }

  private static Work readAvro(BigQueryReadClient client, AvroSchema schema, String stream) throws IOException {
    var reader = new GenericDatumReader<GenericRecord>(new Schema.Parser().parse(schema.getSchema()));
    BinaryDecoder decoder = null;
    GenericRecord record = null;
    Work all = new Work(0, 0);
    for (ReadRowsResponse response : client.readRowsCallable().call(ReadRowsRequest.newBuilder().setReadStream(stream).build())) {
      byte[] bytes = response.getAvroRows().getSerializedBinaryRows().toByteArray();
      decoder = DecoderFactory.get().binaryDecoder(bytes, decoder);
      long rows = 0;
      while (!decoder.isEnd()) {
        record = reader.read(record, decoder);
        ++rows;
      }
      all = all.plus(new Work(rows, bytes.length));
    }
    return all;
  }

  private static Work readTable(String endpoint, BigQueryReadClient client, String table, String format, String compression, int streams) throws Exception {
    ReadSession.Builder wanted = ReadSession.newBuilder().setTable(table).setDataFormat(DataFormat.valueOf(format.toUpperCase()));
    if (!compression.equals("none")) {
      wanted
          .getReadOptionsBuilder()
          .getArrowSerializationOptionsBuilder()
          .setBufferCompression(compression.equals("lz4") ? ArrowSerializationOptions.CompressionCodec.LZ4_FRAME : ArrowSerializationOptions.CompressionCodec.ZSTD);
    }
    ReadSession session = client.createReadSession("projects/bench", wanted.build(), streams);
    List<Callable<Work>> tasks = new ArrayList<>();
    for (ReadStream stream : session.getStreamsList()) {
      tasks.add(
          () -> {
            try (BigQueryReadClient own = connect(endpoint)) {
              return format.equals("arrow") ? readArrow(own, session, stream.getName()) : readAvro(own, session.getAvroSchema(), stream.getName());
            }
          });
    }
    ExecutorService threads = Executors.newFixedThreadPool(Math.max(tasks.size(), 1));
    try {
      Work all = new Work(0, 0);
      for (Future<Work> one : threads.invokeAll(tasks)) all = all.plus(one.get());
      return all;
    } finally {
      threads.shutdown();
    }
  }

  private static long peakKib() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmHWM:")) return Long.parseLong(line.replaceAll("\\D", ""));
    }
    return 0;
  }

  public static void main(String[] words) throws Exception {
    if (words.length != 6) {
      System.err.println("usage: ReadJava HOST:PORT projects/P/datasets/D/tables/T arrow|avro none|lz4|zstd STREAMS TIMES");
      System.exit(2);
    }
    int streams = Integer.parseInt(words[4]);
    int times = Integer.parseInt(words[5]);
    try (BigQueryReadClient client = connect(words[0])) {
      readTable(words[0], client, words[1], words[2], words[3], streams);
      Usage before = Usage.now();
      long started = System.nanoTime();
      Work all = new Work(0, 0);
      for (int i = 0; i < times; ++i) all = all.plus(readTable(words[0], client, words[1], words[2], words[3], streams));
      double wall = (System.nanoTime() - started) / 1e9;
      Usage after = Usage.now();
      System.out.printf(
          "{\"rows\":%d,\"bytes\":%d,\"wall\":%f,\"user\":%f,\"system\":%f,\"minor_faults\":%d,\"peak_kib\":%d}%n",
          all.rows(), all.bytes(), wall, after.user() - before.user(), after.system() - before.system(), after.minorFaults() - before.minorFaults(), peakKib());
    }
    System.exit(0);
  }
}

// read_go ENDPOINT TABLE FORMAT COMPRESSION STREAMS TIMES: reads a table TIMES times with Google's Go client and Arrow's Go reader, and prints
// what it cost, as JSON. FORMAT is arrow; each stream has a goroutine and a connection of its own.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	storage "cloud.google.com/go/bigquery/storage/apiv1"
	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

type work struct {
	rows, bytes int64
}

func connect(ctx context.Context, endpoint string) (*storage.BigQueryReadClient, error) {
	return storage.NewBigQueryReadClient(ctx, option.WithEndpoint(endpoint), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithGRPCDialOption(grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30))))
}

// decode reads the record batches of one message: schema and batch together are an IPC stream.
func decode(schema, batch []byte, pool memory.Allocator) (work, error) {
	reader, err := ipc.NewReader(io.MultiReader(bytes.NewReader(schema), bytes.NewReader(batch)), ipc.WithAllocator(pool))
	if err != nil {
		return work{}, err
	}
	defer reader.Release()
	var done work
	for reader.Next() {
		record := reader.RecordBatch()
		done.rows += record.NumRows()
		for _, column := range record.Columns() {
			done.bytes += int64(column.Data().SizeInBytes())
		}
	}
	return done, reader.Err()
}

func readStream(ctx context.Context, endpoint, name string, schema []byte) (work, error) {
	client, err := connect(ctx, endpoint)
	if err != nil {
		return work{}, err
	}
	defer client.Close()
	stream, err := client.ReadRows(ctx, &storagepb.ReadRowsRequest{ReadStream: name})
	if err != nil {
		return work{}, err
	}
	pool := memory.NewGoAllocator()
	var all work
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		one, err := decode(schema, response.GetArrowRecordBatch().GetSerializedRecordBatch(), pool)
		if err != nil {
			return all, err
		}
		all.rows += one.rows
		all.bytes += one.bytes
	}
}

func readTable(ctx context.Context, client *storage.BigQueryReadClient, endpoint, table, compression string, streams int) (work, error) {
	wanted := &storagepb.ReadSession{Table: table, DataFormat: storagepb.DataFormat_ARROW}
	if compression != "none" {
		codec := map[string]storagepb.ArrowSerializationOptions_CompressionCodec{
			"lz4": storagepb.ArrowSerializationOptions_LZ4_FRAME, "zstd": storagepb.ArrowSerializationOptions_ZSTD}[compression]
		wanted.ReadOptions = &storagepb.ReadSession_TableReadOptions{
			OutputFormatSerializationOptions: &storagepb.ReadSession_TableReadOptions_ArrowSerializationOptions{
				ArrowSerializationOptions: &storagepb.ArrowSerializationOptions{BufferCompression: codec}}}
	}
	session, err := client.CreateReadSession(ctx, &storagepb.CreateReadSessionRequest{Parent: "projects/bench", ReadSession: wanted, MaxStreamCount: int32(streams)})
	if err != nil {
		return work{}, err
	}
	var (
		group sync.WaitGroup
		lock  sync.Mutex
		all   work
		first error
	)
	for _, stream := range session.GetStreams() {
		group.Add(1)
		go func() {
			defer group.Done()
			one, err := readStream(ctx, endpoint, stream.GetName(), session.GetArrowSchema().GetSerializedSchema())
			lock.Lock()
			defer lock.Unlock()
			all.rows += one.rows
			all.bytes += one.bytes
			if err != nil && first == nil {
				first = err
			}
		}()
	}
	group.Wait()
	return all, first
}

func usage() syscall.Rusage {
	var now syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &now); err != nil {
		panic(err)
	}
	return now
}

func seconds(time syscall.Timeval) float64 { return float64(time.Sec) + float64(time.Usec)/1e6 }

func run(words []string) error {
	if len(words) != 6 || words[2] != "arrow" {
		return errors.New("usage: read_go HOST:PORT projects/P/datasets/D/tables/T arrow none|lz4|zstd STREAMS TIMES")
	}
	streams, err := strconv.Atoi(words[4])
	if err != nil {
		return err
	}
	times, err := strconv.Atoi(words[5])
	if err != nil {
		return err
	}
	ctx := context.Background()
	client, err := connect(ctx, words[0])
	if err != nil {
		return err
	}
	defer client.Close()
	before, started := usage(), time.Now()
	var all work
	for range times {
		one, err := readTable(ctx, client, words[0], words[1], words[3], streams)
		if err != nil {
			return err
		}
		all.rows += one.rows
		all.bytes += one.bytes
	}
	wall, after := time.Since(started).Seconds(), usage()
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"rows": all.rows, "bytes": all.bytes, "wall": wall,
		"user": seconds(after.Utime) - seconds(before.Utime), "system": seconds(after.Stime) - seconds(before.Stime),
		"minor_faults": after.Minflt - before.Minflt, "peak_kib": after.Maxrss})
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Sends records by every codec and reads them back as a member of a group; see tests/support/kafka_clients.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type found struct {
	Partition int32   `json:"partition"`
	Offset    int64   `json:"offset"`
	Key       string  `json:"key"`
	Value     *string `json:"value"`
	Number    string  `json:"number"`
	Timestamp int64   `json:"timestamp"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	address, topic, group, codecs, transactionalID := os.Args[1], os.Args[2], os.Args[3], strings.Split(os.Args[4], ","), os.Args[6]
	count, err := strconv.Atoi(os.Args[5])
	must(err)
	for _, codec := range codecs {
		produce(address, topic, codec, count, transactionalID)
	}
	consume(address, topic, group, len(codecs)*count)
}

func produce(address, topic, codec string, count int, transactionalID string) {
	compression := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[codec]
	options := []kgo.Opt{kgo.SeedBrokers(address), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(compression)}
	if transactionalID != "" {
		options = append(options, kgo.TransactionalID(transactionalID))
	}
	client, err := kgo.NewClient(options...)
	must(err)
	defer client.Close()
	ctx := context.Background()
	if transactionalID != "" {
		must(client.BeginTransaction())
		send(client, "aborted", count)
		must(client.EndTransaction(ctx, kgo.TryAbort))
		must(client.BeginTransaction())
	}
	send(client, codec, count)
	if transactionalID != "" {
		must(client.EndTransaction(ctx, kgo.TryCommit))
	}
}

func send(client *kgo.Client, prefix string, count int) {
	records := make([]*kgo.Record, count)
	for i := range records {
		records[i] = &kgo.Record{
			Key:       []byte(fmt.Sprintf("%s-%d", prefix, i)),
			Headers:   []kgo.RecordHeader{{Key: "number", Value: []byte(strconv.Itoa(i))}},
			Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i)),
		}
		if i%7 != 0 {
			records[i].Value = []byte(fmt.Sprintf("value %d", i))
		}
	}
	must(client.ProduceSync(context.Background(), records...).FirstErr())
}

func consume(address, topic, group string, count int) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	must(err)
	defer client.Close()
	out := json.NewEncoder(os.Stdout)
	for seen := 0; seen < count; {
		fetches := client.PollFetches(context.Background())
		must(fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			one := found{r.Partition, r.Offset, string(r.Key), nil, string(r.Headers[0].Value), r.Timestamp.UnixMilli()}
			if r.Value != nil {
				value := string(r.Value)
				one.Value = &value
			}
			must(out.Encode(one))
			seen++
		})
	}
	must(client.CommitUncommittedOffsets(context.Background()))
}

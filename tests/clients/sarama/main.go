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

	"github.com/Shopify/sarama"
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
	address, topic, group, codecs := os.Args[1], os.Args[2], os.Args[3], strings.Split(os.Args[4], ",")
	count, err := strconv.Atoi(os.Args[5])
	must(err)
	for _, codec := range codecs {
		produce(address, topic, codec, count)
	}
	consume(address, topic, group, len(codecs)*count)
}

func config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	// Without a time of retention it commits by version 1 of OffsetCommit, which Kafka has dropped with 4.0.
	config.Consumer.Offsets.Retention = 24 * time.Hour
	return config
}

func produce(address, topic, codec string, count int) {
	config := config()
	config.Producer.Compression = map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}[codec]
	producer, err := sarama.NewSyncProducer([]string{address}, config)
	must(err)
	messages := make([]*sarama.ProducerMessage, count)
	for i := range messages {
		messages[i] = &sarama.ProducerMessage{
			Topic:     topic,
			Key:       sarama.StringEncoder(fmt.Sprintf("%s-%d", codec, i)),
			Headers:   []sarama.RecordHeader{{Key: []byte("number"), Value: []byte(strconv.Itoa(i))}},
			Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i)),
		}
		if i%7 != 0 {
			messages[i].Value = sarama.StringEncoder(fmt.Sprintf("value %d", i))
		}
	}
	must(producer.SendMessages(messages))
	must(producer.Close())
}

type handler struct {
	count int
	done  context.CancelFunc
	found chan *sarama.ConsumerMessage
}

func (*handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h *handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message := <-claim.Messages():
			if message == nil {
				return nil
			}
			session.MarkMessage(message, "")
			h.found <- message
		case <-session.Context().Done():
			return nil
		}
	}
}

func consume(address, topic, group string, count int) {
	members, err := sarama.NewConsumerGroup([]string{address}, group, config())
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	h := &handler{count: count, done: cancel, found: make(chan *sarama.ConsumerMessage)}
	go func() {
		for ctx.Err() == nil {
			must(members.Consume(ctx, []string{topic}, h))
		}
	}()
	out := json.NewEncoder(os.Stdout)
	for seen := 0; seen < count; seen++ {
		m := <-h.found
		one := found{m.Partition, m.Offset, string(m.Key), nil, string(m.Headers[0].Value), m.Timestamp.UnixMilli()}
		if m.Value != nil {
			value := string(m.Value)
			one.Value = &value
		}
		must(out.Encode(one))
	}
	cancel()
	must(members.Close())
}

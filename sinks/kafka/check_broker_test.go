//go:build integration

package kafka

import (
	"slices"
	"testing"

	"github.com/segmentio/kafka-go"
)

func testCheckFindsTheTopicsAndMakesNone(t *testing.T, broker testBroker) {
	createTopic(t, broker, "etl-events", 3, kafka.ConfigEntry{ConfigName: "max.message.bytes", ConfigValue: "50000"})
	at := broker.at("PLAINTEXT")
	wantFindings(t, checkOf(t.Context(), t, at, "{source}-events"), [3]string{"broker", "ok", at + " answers for a cluster of 1"},
		[3]string{"topic", "ok", "etl-events is there, with 3 partitions whose leaders answer, for records of up to 49"},
		[3]string{"topic", "problem", "--create --topic billing-events"})
	wantFindings(t, checkOf(t.Context(), t, at, "etl-{kind}"), [3]string{"broker", "ok", ""}, [3]string{"topic", "unknown", "etl-events"})

	client := &kafka.Client{Addr: kafka.TCP(at), Transport: &kafka.Transport{}}
	defer client.Transport.(*kafka.Transport).CloseIdleConnections()
	answer, err := client.Metadata(t.Context(), &kafka.MetadataRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(answer.Topics, func(topic kafka.Topic) bool { return topic.Name == "billing-events" }) {
		t.Error("the check has made the topic that was missing")
	}
}

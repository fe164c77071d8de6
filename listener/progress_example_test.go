package listener_test

import (
	"fmt"
	"log"
	"time"

	"sparkbridge/listener"
)

// What a batch did, of an event's payload.
func ExampleDecodeProgress() {
	p, err := listener.DecodeProgress([]byte(`{
		"id": "6f2b9f0e-3d0c-4f3c-9a39-6d1c7b0c5d11", "runId": "0b7d6a52-8a53-4a0f-8a43-0f1d6d0e9b22", "name": "orders",
		"timestamp": "2026-11-01T10:00:00.000Z", "batchId": 7, "numInputRows": 120, "processedRowsPerSecond": 60.5,
		"durationMs": {"addBatch": 1500, "triggerExecution": 1983},
		"eventTime": {"watermark": "2026-11-01T09:50:00.000Z"},
		"observedMetrics": {"totals": {"n": 120}}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Name, p.BatchID, *p.NumInputRows, p.DurationMs["addBatch"])
	fmt.Println(p.InputRowsPerSecond == nil, *p.ProcessedRowsPerSecond) // Spark did not tell the first
	fmt.Println(p.EventTime.Watermark.Format(time.TimeOnly))
	fmt.Printf("%s\n", p.ObservedMetrics["totals"])
	// Output:
	// orders 7 120 1500
	// true 60.5
	// 09:50:00
	// {"n": 120}
}

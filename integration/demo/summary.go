package main

import (
	"fmt"
	"strconv"
	"strings"

	"sparkbridge/integration/servers"
	"sparkbridge/internal/lines"
	"sparkbridge/listener"
)

// kinds in the order of the table, and those that a demo must have shown.
var (
	kinds    = []listener.Kind{listener.KindStarted, listener.KindProgress, listener.KindIdle, listener.KindTerminated, listener.KindGap, listener.KindBus, listener.KindUnknown}
	demanded = []listener.Kind{listener.KindStarted, listener.KindProgress, listener.KindTerminated}
)

// summary counts different events by kind.
type summary struct {
	at      map[listener.Kind][sinkCount]int
	logged  map[listener.Kind]int // in Spark's own event log
	missing [sinkCount]int        // of those that Spark has logged
	repeats [sinkCount]int
}

// summarize compares what arrived with what Spark wrote to its event log of its own accord.
func summarize(b *board, logged []servers.LoggedEvent) summary {
	s := summary{at: map[listener.Kind][sinkCount]int{}, logged: map[listener.Kind]int{}, repeats: b.repeats}
	arrived := map[string]*row{}
	for _, r := range b.rows {
		counts := s.at[r.event.Kind()]
		for sink, is := range r.at {
			if is {
				counts[sink]++
			}
		}
		s.at[r.event.Kind()] = counts
		arrived[occasion(r.event.Kind(), r.event.RunID, r.event.Data.BatchID)] = r
	}
	for _, e := range logged {
		kind := listener.Kind(e.Kind)
		s.logged[kind]++
		r := arrived[occasion(kind, e.RunID, e.BatchID)]
		for sink := range sinkCount {
			if kind != listener.KindIdle && (r == nil || !r.at[sink]) {
				s.missing[sink]++
			}
		}
	}
	return s
}

// occasion names what happened once in a run, or once in a batch of it.
func occasion(kind listener.Kind, run string, batch int64) string {
	if kind != listener.KindProgress {
		return run + string(kind)
	}
	return run + string(kind) + strconv.FormatInt(batch, 10)
}

// lacking is an error that names what a demo must have shown and has not.
func (s summary) lacking() error {
	var lacks []string
	for _, kind := range demanded {
		for sink := range sinkCount {
			if s.at[kind][sink] == 0 {
				lacks = append(lacks, fmt.Sprintf("no %s event at %s", kind, sink))
			}
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("not everything has arrived: %s; with a larger DEMO_SECONDS a slow machine has more time", strings.Join(lacks, ", "))
}

// table prints the counts of the kinds that there were.
func (s *screen) table(sum summary) {
	s.say("%s", s.paint(lines.Bold, fmt.Sprintf("%-12s %8s %8s %18s", "events", natsSink, webhookSink, "Spark's own log")))
	for _, kind := range kinds {
		counts, logged := sum.at[kind], sum.logged[kind]
		if counts == [sinkCount]int{} && logged == 0 {
			continue
		}
		own := "-"
		if logged > 0 {
			own = strconv.Itoa(logged)
		}
		s.say("%s %8d %8d %18s", s.paint(lines.KindStyle(&event{Type: "." + string(kind)}), fmt.Sprintf("%-12s", kind)), counts[natsSink], counts[webhookSink], own)
	}
}

// verdict says in a sentence whether everything arrived.
func (s *screen) verdict(sum summary) {
	if sum.missing == [sinkCount]int{} {
		s.say("%s Every event in Spark's own event log has arrived at both sinks.", s.paint(lines.Green, "✓"))
	} else {
		s.say("%s Of the events in Spark's own event log, %d have not arrived at nats and %d not at webhook.", s.paint(lines.BoldRed, "!"), sum.missing[natsSink], sum.missing[webhookSink])
	}
	if sum.repeats != [sinkCount]int{} {
		s.say("  Repeats, with the ids of the first delivery: %d at nats, %d at webhook.", sum.repeats[natsSink], sum.repeats[webhookSink])
	}
}

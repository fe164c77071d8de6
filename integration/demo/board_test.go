package main

import (
	"slices"
	"testing"
	"time"

	"sparkbridge/internal/lines"
)

func arrive(b *board, s sink, id string, after time.Duration) {
	b.add(arrival{s, event{ID: id, Type: sparkType + "progress", RunID: "run"}, noon.Add(after)})
}

// shows are the ids that are ready, with a mark for those that lack a sink.
func shows(b *board, after time.Duration) (ids []string) {
	for _, r := range b.ready(noon.Add(after)) {
		id := r.event.ID
		if !r.everywhere() {
			id += "?"
		}
		ids = append(ids, id)
	}
	return ids
}

func TestBoardShowsAnEventOnceItIsEverywhere(t *testing.T) {
	b := newBoard()
	arrive(b, natsSink, "1", 0)
	arrive(b, natsSink, "2", 0)
	arrive(b, webhookSink, "2", time.Millisecond)
	if got := shows(b, time.Millisecond); got != nil {
		t.Errorf("shown before the first event is everywhere: %q", got)
	}
	arrive(b, webhookSink, "1", 2*time.Millisecond)
	if got := shows(b, 2*time.Millisecond); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("shown: %q", got)
	}
	if got := shows(b, time.Hour); got != nil {
		t.Errorf("shown again: %q", got)
	}
}

func TestBoardShowsAnEventThatASinkLacksForLong(t *testing.T) {
	b := newBoard()
	arrive(b, webhookSink, "1", 0)
	if got := shows(b, patience-1); got != nil {
		t.Errorf("shown too early: %q", got)
	}
	if got := shows(b, patience); !slices.Equal(got, []string{"1?"}) {
		t.Errorf("shown in the end: %q", got)
	}
	arrive(b, natsSink, "1", time.Minute)
	if got := shows(b, time.Minute); !slices.Equal(got, []string{"1"}) {
		t.Errorf("shown once it is everywhere: %q", got)
	}
}

func TestBoardCountsRepeats(t *testing.T) {
	b := newBoard()
	for range 3 {
		arrive(b, webhookSink, "1", 0)
	}
	arrive(b, natsSink, "1", 0)
	if b.repeats != [sinkCount]int{webhookSink: 2} || len(shows(b, 0)) != 1 || len(shows(b, time.Hour)) != 0 {
		t.Errorf("repeats: %v", b.repeats)
	}
}

func TestBoardKnowsWhatIsStillOpen(t *testing.T) {
	b := newBoard()
	add := func(s sink, kind, run string) {
		b.add(arrival{s, event{ID: run + kind, Type: sparkType + kind, RunID: run, Data: lines.Document{State: run}}, noon})
	}
	if !b.ended() || b.attached() || !b.first.IsZero() {
		t.Error("a board without events has some")
	}
	add(natsSink, "bus", "")
	if !b.ended() {
		t.Error("a bus event opens a run")
	}
	for _, s := range []sink{natsSink, webhookSink} {
		add(s, "started", "a")
		add(s, "terminated", "b")
	}
	if b.ended() {
		t.Error("run a is not over")
	}
	add(natsSink, "terminated", "a")
	if b.ended() {
		t.Error("the webhook does not know of a's end")
	}
	add(webhookSink, "terminated", "a")
	if !b.ended() {
		t.Error("all runs are over")
	}
	add(natsSink, "progress", "a")
	if b.first != noon {
		t.Errorf("first batch: %s", b.first)
	}
}

func TestBoardKnowsThatTheBusIsHeld(t *testing.T) {
	b := newBoard()
	held := event{ID: "x", Type: "dev.sparkbridge.bus", Data: lines.Document{State: "attached"}}
	b.add(arrival{natsSink, held, noon})
	if b.attached() {
		t.Error("attached before the webhook knows")
	}
	b.add(arrival{webhookSink, held, noon})
	if !b.attached() {
		t.Error("not attached")
	}
}

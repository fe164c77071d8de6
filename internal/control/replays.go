package control

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

func (d *Desk) replays(r *http.Request) (any, error) {
	s, err := d.sink(r)
	if err != nil {
		return nil, err
	}
	list, err := s.Replays.Unfinished()
	if err != nil {
		return nil, err
	}
	all := []Replay{}
	for _, one := range list {
		all = append(all, Replay{Sink: s.Name, ID: one.ID, From: one.From, To: one.To, Next: one.Next})
	}
	return all, nil
}

func (d *Desk) ask(r *http.Request) (any, error) {
	s, err := d.sink(r)
	if err != nil {
		return nil, err
	}
	var want Range
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
		return nil, refuse(http.StatusBadRequest, "the request is no JSON: %v", err)
	}
	from, to, err := d.sequences(want, time.Now())
	if err != nil {
		return nil, err
	}
	events, err := s.Replays.Count(r.Context(), from, to)
	if err != nil {
		return nil, err
	}
	shown := Replay{Sink: s.Name, From: from, To: to, Next: from, Events: events}
	if want.DryRun {
		return shown, nil
	}
	one, err := s.Replays.Ask(from, to)
	if err != nil {
		return nil, err
	}
	s.Wake()
	shown.ID = one.ID
	return shown, nil
}

func (d *Desk) cancel(r *http.Request) (any, error) {
	s, err := d.sink(r)
	if err != nil {
		return nil, err
	}
	list, err := s.Replays.Unfinished()
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		if one.ID == r.PathValue("id") {
			err := s.Replays.Finish(one.ID)
			s.Wake() // it may be under way
			return Replay{Sink: s.Name, ID: one.ID, From: one.From, To: one.To, Next: one.Next}, err
		}
	}
	return nil, refuse(http.StatusNotFound, "sink %s has no replay %q that is not finished: bridge replay --list shows them", s.Name, r.PathValue("id"))
}

// sequences is a range in sequences that are there.
func (d *Desk) sequences(want Range, now time.Time) (from, to uint64, err error) {
	first, next := d.Journal.Bounds()
	if from, err = d.place(want.From, first, now); err != nil {
		return 0, 0, err
	}
	if to, err = d.place(want.To, next, now); err != nil {
		return 0, 0, err
	}
	from, to = max(from, first), min(to, next)
	if from >= to {
		return 0, 0, d.nothing(want, first, next)
	}
	return from, to, nil
}

// nothing is the answer to a range in which there is nothing, with what there is.
func (d *Desk) nothing(want Range, first, next uint64) error {
	if first == next {
		return refuse(http.StatusBadRequest, "nothing to replay: the journal holds no events")
	}
	oldest, err := d.Journal.When(first)
	if err != nil {
		return err
	}
	newest, err := d.Journal.When(next - 1)
	if err != nil {
		return err
	}
	return refuse(http.StatusBadRequest, "nothing to replay between %s and %s: the journal holds sequences %d to %d, recorded from %s to %s",
		cmp.Or(want.From, "the oldest event"), cmp.Or(want.To, "now"), first, next-1, oldest.Format(time.RFC3339), newest.Format(time.RFC3339))
}

func (d *Desk) place(text string, usual uint64, now time.Time) (uint64, error) {
	if text == "" {
		return usual, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return d.Journal.Since(now.Add(-ago))
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return d.Journal.Since(at)
	}
	return 0, refuse(http.StatusBadRequest, "%q is no place in the journal: write a sequence, a time or a duration back from now, for example 1234, 2026-01-31T12:00:00Z or 2h", text)
}

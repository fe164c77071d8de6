package bridge

import (
	"errors"
	"fmt"
	"time"

	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// Selection is which events of a journal are wanted. Zero values select all.
type Selection struct {
	First, End   uint64    // sequences; End is left out
	Since, Until time.Time // when they were recorded; Until is left out
	sinks.Match
}

// Export hands the events of the journal in a folder to take, in their order. What a
// bridge that runs deletes meanwhile is told to gone, and left out. An error of take
// ends it, and so does damage, with all that comes before it handed out.
func Export(dir string, s Selection, take func(listener.Event) error, gone func(*journal.RetiredError)) error {
	view, err := journal.Look(dir)
	if err != nil {
		return advised(err)
	}
	return s.export(view, take, gone)
}

func (s *Selection) export(view *journal.View, take func(listener.Event) error, gone func(*journal.RetiredError)) error {
	err := view.EachLeft(s.First, func(r journal.Record) error {
		switch {
		case s.End > 0 && r.Sequence >= s.End, !s.Until.IsZero() && !r.Time.Before(s.Until):
			return errEnough
		case r.Time.Before(s.Since):
			return nil
		}
		e, err := listener.DecodeRecord(r.Sequence, r.Time, r.Body)
		if err != nil || !s.Wants(&e) {
			return err
		}
		return take(e)
	}, gone)
	switch {
	case errors.Is(err, errEnough):
		return nil
	case spoilt(err):
		return fmt.Errorf("%w: what comes before that is exported; bridge journal verify tells what else is damaged", err)
	}
	return err
}

package connect

import "sparkbridge/listener"

// Run is the handle of a run whose ids are known, from its events for example. Nothing is
// asked yet: a run that Spark does not know, or knows no more, answers listener.ErrNoQuery.
// Active and Get find only what runs at the moment.
func (s *Streams) Run(id, runID string) *StreamingQuery {
	return s.session.handle(listener.Query{ID: id, RunID: runID})
}

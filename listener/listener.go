package listener

// Listener is told what the queries of a session do. All callbacks are optional.
// They are called one at a time, in the order of the events; a slow callback
// holds up the next one. A callback that panics is logged, and the bus goes on,
// as on Spark's own bus.
type Listener struct {
	OnQueryStarted    func(Event)
	OnQueryProgress   func(Event)
	OnQueryIdle       func(Event)
	OnQueryTerminated func(Event)
	// OnOther is told what is none of these: batches that cannot be had (KindGap), and events of
	// a type that this version does not know (KindUnknown).
	OnOther func(Event)
}

// callback returns what the listener wants called for a kind, nil for nothing.
func (l *Listener) callback(k Kind) func(Event) {
	switch k {
	case KindStarted:
		return l.OnQueryStarted
	case KindProgress:
		return l.OnQueryProgress
	case KindIdle:
		return l.OnQueryIdle
	case KindTerminated:
		return l.OnQueryTerminated
	default:
		return l.OnOther
	}
}

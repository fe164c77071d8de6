package main

import "sparkbridge/internal/lines"

// event is an event as the sinks get it, as far as the demo shows it.
type event = lines.Event

package bridge

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"sparkbridge/listener"
)

// tell fails the test with all that is needed to understand it.
func (s *schedule) tell(events []listener.Event) {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: go test ./internal/bridge -run TestSchedules -seed %d -v\nserver %+v\nsource %+v%s\nsteps\n", s.seed, s.seed, s.world.options, s.world.source, s.world.limit)
	for _, t := range s.steps {
		fmt.Fprintf(&b, "  %s\n", t)
	}
	problems := s.lookout.problems
	fmt.Fprintf(&b, "%d problems\n  %s\n", len(problems), strings.Join(problems[:min(len(problems), 25)], "\n  "))
	if *oneSeed != 0 {
		fmt.Fprintf(&b, "log (time zero is %s)\n%s", s.began.UTC().Format(time.RFC3339), s.log)
		for _, call := range s.spark.Calls() {
			if what := busCall(call); what != "" {
				fmt.Fprintf(&b, "%9s %s\n", s.since(call.At), what)
			}
		}
		for _, e := range events {
			fmt.Fprintf(&b, "%9s %5d %-9s %s %s\n", s.since(e.Recorded), e.Sequence, e.Origin, e.ID, e.Outcome)
		}
	}
	s.t.Error(b.String())
}

// count notes what happened, so that nobody takes a schedule for hard that is not.
func (s *schedule) count(events []listener.Event) {
	for what := range enough {
		s.hit[what] += s.log.count(what)
	}
	for _, e := range events {
		s.hit["kind "+string(e.Kind)]++
		s.hit["origin "+string(e.Origin)]++
		if e.Kind == listener.KindTerminated {
			s.hit[fmt.Sprintf("end %s %s", e.Origin, e.Outcome)]++
		}
		if e.Kind == listener.KindBus {
			s.hit["state "+gjson.GetBytes(e.Payload, "state").Str]++
		}
	}
}

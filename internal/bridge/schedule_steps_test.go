package bridge

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// step is one thing that befalls the bridge, the way to Spark, or the job.
type step struct {
	at, lasts time.Duration
	kind      string
	n         int // how often, how many; what it means is the kind's matter
}

func (s step) String() string {
	return fmt.Sprintf("%9s %-12s lasts %-8s n=%d", s.at.Round(time.Millisecond), s.kind, s.lasts.Round(time.Millisecond), s.n)
}

// trouble is a kind of step: for how long it goes on, what it does first and last.
type trouble struct {
	kind   string
	weight int
	lasts  func(*rand.Rand) time.Duration
	begin  func(*schedule, step)
	end    func(*schedule, step)
}

func between(shortest, longest time.Duration) func(*rand.Rand) time.Duration {
	return func(rng *rand.Rand) time.Duration { return shortest + rand64(rng, longest-shortest) }
}

// soonOr is half the time less than the bridge takes to look at anything.
func soonOr(longest time.Duration) func(*rand.Rand) time.Duration {
	return func(rng *rand.Rand) time.Duration { return rand64(rng, pick(rng, 2*time.Second, longest)) }
}

// noTime is the end of what is over as soon as it has begun.
func noTime(*rand.Rand) time.Duration { return 0 }

// troubles are the faults that a schedule is made of.
func troubles() []trouble {
	mend := func(s *schedule, _ step) { s.spark.Heal() }
	up := func(s *schedule, _ step) { s.up() }
	return []trouble{
		{"refuse", 4, between(time.Second, 4*time.Minute), func(s *schedule, _ step) { s.spark.Refuse(true); s.spark.Disconnect() }, func(s *schedule, _ step) { s.spark.Refuse(false) }},
		{"disconnect", 4, noTime, func(s *schedule, _ step) { s.spark.Disconnect() }, nil},
		{"freeze", 3, noTime, func(s *schedule, _ step) { s.spark.Freeze() }, nil},
		{"execute", 5, between(time.Second, 2*time.Minute), func(s *schedule, t step) { s.strike(sparkpb.ExecutePlanMethod, t.n) }, mend},
		{"reattach", 5, between(time.Second, 3*time.Minute), func(s *schedule, t step) {
			s.strike(sparkpb.ReattachExecuteMethod, t.n)
			s.spark.Disconnect()
		}, mend},
		{"release", 3, between(time.Second, 2*time.Minute), func(s *schedule, t step) { s.strike(sparkpb.ReleaseExecuteMethod, t.n) }, mend},
		{"away", 2, between(6*time.Minute, 12*time.Minute), func(s *schedule, _ step) { s.down() }, up},
		{"restart", 4, between(time.Second, 2*time.Minute), func(s *schedule, _ step) { s.down() }, up},
		{"kill", 6, between(time.Second, 4*time.Minute), func(s *schedule, _ step) { s.kill() }, up},
		{"kill-writing", 6, between(10*time.Second, 2*time.Minute), func(s *schedule, t step) { s.light(t.n) }, up},
		{"driver", 4, between(time.Second, 3*time.Minute), func(s *schedule, _ step) { s.stopDriver() }, func(s *schedule, _ step) { s.startDriver() }},
		{"hold", 3, between(10*time.Second, 12*time.Minute), func(s *schedule, _ step) { s.hold(false) }, func(s *schedule, _ step) { s.letGo() }},
		{"rob", 3, between(10*time.Second, 12*time.Minute), func(s *schedule, _ step) { s.hold(true) }, func(s *schedule, _ step) { s.letGo() }},
		{"remove", 3, noTime, func(s *schedule, _ step) { s.removeBus() }, nil},
		{"swallow", 5, noTime, func(s *schedule, t step) { s.job.lose(t.n) }, nil},
		{"deaf", 5, between(20*time.Second, 2*time.Minute), func(s *schedule, t step) {
			s.job.lose(t.n)
			for range 8 {
				s.strike(sparkpb.ExecutePlanMethod, 0)
			}
		}, mend},
		{"large", 4, noTime, func(s *schedule, _ step) { s.job.grow(1) }, nil},
		{"burst", 6, noTime, func(s *schedule, t step) { s.job.burst(t.n) }, nil},
		{"quick", 4, noTime, func(s *schedule, t step) { s.job.quick(t.n) }, nil},
		{"burst-kill", 3, between(time.Second, time.Minute), func(s *schedule, t step) { s.job.burst(t.n); s.kill() }, up},
		{"flood", 3, between(6*time.Minute, 9*time.Minute), func(s *schedule, t step) { s.kill(); s.job.burst(keptDocuments + t.n) }, up},
		{"close", 4, soonOr(3 * time.Minute), func(s *schedule, _ step) { s.closeSession() }, func(s *schedule, _ step) { s.reopenSession() }},
		{"disk-full", 2, between(time.Second, 50*time.Second), func(s *schedule, _ step) { s.full.Store(true) }, func(s *schedule, _ step) { s.full.Store(false) }},
		{"disk-full-long", 2, between(70*time.Second, 5*time.Minute), func(s *schedule, _ step) { s.full.Store(true) }, func(s *schedule, _ step) { s.full.Store(false) }},
	}
}

// plan makes the steps of a schedule: some in quick succession, some after a long calm.
func plan(rng *rand.Rand) []step {
	kinds, total := troubles(), 0
	for _, k := range kinds {
		total += k.weight
	}
	var steps []step
	at := rand64(rng, 40*time.Second)
	for range 6 + rng.IntN(8) {
		n := rng.IntN(total)
		for _, k := range kinds {
			if n -= k.weight; n < 0 {
				steps = append(steps, step{at: at, lasts: k.lasts(rng), kind: k.kind, n: 1 + rng.IntN(10)*(1+rng.IntN(16))})
				break
			}
		}
		at += rand64(rng, pick(rng, 5*time.Second, time.Minute, 3*time.Minute, 4*time.Minute, 9*time.Minute))
	}
	return steps
}

// strike lets calls of a method go wrong, in one of the ways in which they do.
func (s *schedule) strike(method string, n int) {
	const noReason = "something on the way has failed"
	for range 1 + n%4 {
		weather := status.Error(pick(s.rng, codes.Unavailable, codes.Internal, codes.Unknown, codes.ResourceExhausted, codes.Canceled), noReason)
		fault := connecttest.Fault{Err: weather}
		flavour := pick(s.rng, "weather", "retry-info", "class", "hang", "slow", "late", "late-hang", "cut", "cut-hang")
		switch flavour {
		case "hang", "slow", "late-hang", "cut-hang":
			// Streams that are silent again and again look like a bus that is taken.
			if method == sparkpb.ExecutePlanMethod && time.Since(s.silenced) < settling {
				flavour = "weather"
				break
			}
			s.silenced = time.Now()
		}
		switch flavour {
		case "retry-info":
			fault.Err = connecttest.RetryAfter(weather, time.Duration(1+n%20)*time.Second)
		case "class":
			fault.Err = s.spark.Error(pick(s.rng, "INTERNAL_ERROR", "INVALID_CURSOR.DISCONNECTED", "SPARK_JOB_CANCELLED"), noReason)
		case "hang":
			fault.Hang = true
		case "slow":
			fault = connecttest.Fault{Before: func(ctx context.Context) { _ = pause(ctx, time.Duration(1+n%4)*time.Second) }}
		case "late", "late-hang":
			fault.Late, fault.Hang = true, flavour == "late-hang"
		case "cut", "cut-hang":
			fault.Cut, fault.Frames, fault.Hang = true, n%4, flavour == "cut-hang"
		}
		s.hit["fault "+flavour]++
		s.spark.Inject(method, fault)
	}
}

package connecttest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

func TestEventsOfAClosedSession(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		job := session(t, s, c)
		job.SetQueries(connecttest.Query{ID: "q", RunID: "r"}, connecttest.Query{ID: "q", RunID: "old", Stopped: true})
		b := c.open()
		job.Close()
		e := b.event().GetStreamingQueryListenerEventsResult().GetEvents()[0]
		if e.GetEventType() != sparkpb.StreamingQueryEventType_QUERY_TERMINATED_EVENT || !strings.Contains(e.GetEventJson(), `"runId":"r"`) {
			t.Errorf("closing the session told %v, want the end of run r", e)
		}
		if frames, err := drain(b.stream); err != nil || !complete(frames) {
			t.Errorf("then came %v, %v, want result_complete", frames, err)
		}
		if len(job.Emitted()) != 1 {
			t.Errorf("emitted %v, want one end", job.Emitted())
		}
		ends(t, "reattach", c.reattach(t.Context(), b.operation, b.last), "INVALID_HANDLE.SESSION_CLOSED")
	})
}

func TestDroppedSessionDisconnects(t *testing.T) {
	inBubble(t, connecttest.Options{SlowAdd: true}, func(t *testing.T, s *connecttest.Server, c *client) {
		b := c.open()
		if b.read[0].GetExecutionProgress() == nil {
			t.Errorf("a slow ADD began with %v, want execution_progress", b.read[0])
		}
		session(t, s, c).Drop()
		ends(t, "bus", b.stream, "INVALID_CURSOR.DISCONNECTED")
		ends(t, "reattach", c.reattach(t.Context(), b.operation, b.last), "INVALID_HANDLE.SESSION_CLOSED")
	})
}

func TestAddsThatRaceAreBothAcknowledged(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		job := session(t, s, c)
		first := c.open()
		job.LetNextAddRace()
		second := c.open()
		job.Idle(`{"n":1}`)
		for _, b := range []*bus{first, second} {
			if e := b.event().GetStreamingQueryListenerEventsResult().GetEvents()[0]; e.GetEventJson() != `{"n":1}` {
				t.Errorf("a bus carried %v", e)
			}
		}
		job.RemoveBus()
		if frames, err := drain(first.stream); err != nil || !complete(frames) {
			t.Errorf("the first bus ended with %v, %v, want result_complete", frames, err)
		}
		job.Idle(`{"n":2}`)
		if e := second.event().GetStreamingQueryListenerEventsResult().GetEvents()[0]; e.GetEventJson() != `{"n":2}` {
			t.Errorf("the bus that cannot be removed carried %v", e)
		}
		job.Close()
	})
}

func TestWhoHoldsTheBus(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		job := session(t, s, c)
		if lost := job.Idle(`{}`); lost.OperationID != "" {
			t.Errorf("an event without a bus was carried by %s", lost.OperationID)
		}
		if !job.HoldBus() || job.HoldBus() {
			t.Fatal("a free bus is taken once")
		}
		_, stream := c.add(t.Context())
		silent(t, "ADD beside the owner's", stream)
		job.RemoveBus()
		b := c.open()
		if holder, taken := job.Holder(); holder != b.operation || !taken {
			t.Errorf("bus is held by %q", holder)
		}
		job.RemoveBus()
		if frames, err := drain(b.stream); err != nil || !complete(frames) {
			t.Errorf("bus removed by another client: %v, %v", frames, err)
		}
		if s.Adds() != 2 || s.Removes() != 0 {
			t.Errorf("counted %d ADDs and %d REMOVEs, want 2 and 0", s.Adds(), s.Removes())
		}
	})
}

// The defaults are Spark's: an operation lives five minutes and up to a round longer.
func TestAbandonedAfterFiveMinutes(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		5*time.Minute - time.Second: "", 5*time.Minute + 31*time.Second: "INVALID_HANDLE.OPERATION_ABANDONED",
	} {
		inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
			b := c.open()
			began := time.Now()
			ends(t, "bus", b.stream, "")
			if lasted := time.Since(began); lasted != 2*time.Minute {
				t.Errorf("a stream lasted %v, want 2 min", lasted)
			}
			time.Sleep(wait)
			ends(t, "reattach after "+wait.String(), c.reattach(t.Context(), b.operation, b.last), want)
			if holder, taken := session(t, s, c).Holder(); want != "" && (holder != "" || !taken) {
				t.Errorf("after it was abandoned, %q holds the bus (taken %v), want a zombie", holder, taken)
			}
		})
	}
}

func TestLargeEventsAndUnsentOnesAreKept(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		job := session(t, s, c)
		b := c.open()
		ends(t, "bus", b.stream, "")
		payload := strings.Repeat("x", 6<<20)
		for range 4 {
			job.Terminated(payload)
		}
		b.stream = c.reattach(t.Context(), b.operation, b.last)
		for range 4 {
			if got := b.event().GetStreamingQueryListenerEventsResult().GetEvents()[0].GetEventJson(); got != payload {
				t.Fatalf("got %d bytes, want %d", len(got), len(payload))
			}
		}
		ends(t, "from the first", c.reattach(t.Context(), b.operation, b.first.GetResponseId()), "INVALID_CURSOR.POSITION_NOT_AVAILABLE")
	})
}

func TestSpark35HasNoBus(t *testing.T) {
	inBubble(t, connecttest.Options{Version: connecttest.Spark35}, func(t *testing.T, _ *connecttest.Server, c *client) {
		if id := c.create(); id != "" {
			t.Errorf("Spark 3.5 has no server-side session id, got %s", id)
		}
		for _, command := range []*sparkpb.Command{addCommand(), removeCommand()} {
			_, err := drain(c.execute(t.Context(), "", command))
			if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "not supported") || class(err) != "" {
				t.Errorf("bus command: %v, want INTERNAL not supported, without a class", err)
			}
		}
		if err := c.releaseSession(); status.Code(err) != codes.Unimplemented {
			t.Errorf("ReleaseSession: %v, want UNIMPLEMENTED", err)
		}
	})
}

func TestLongMessagesAreFetchedOnce(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		c.create()
		s.FailNext(sparkpb.ReleaseExecuteMethod, 1, s.Error("LONG", strings.Repeat("x", 5000)))
		err := c.probe()
		if n := len(status.Convert(err).Message()); n != 2048 {
			t.Errorf("message has %d characters, want 2048", n)
		}
		fetch := &sparkpb.FetchErrorDetailsRequest{SessionId: c.session, UserContext: c.context(), ErrorId: info(err)["errorId"]}
		for _, want := range []int{1, 0} {
			out, err := c.rpc.FetchErrorDetails(t.Context(), fetch)
			if err != nil || len(out.GetErrors()) != want {
				t.Fatalf("got %v, %v, want %d errors", out, err, want)
			}
			if want == 1 && len(out.GetErrors()[0].GetMessage()) < 5000 {
				t.Errorf("the whole message has %d characters", len(out.GetErrors()[0].GetMessage()))
			}
		}
	})
}

func TestQuestionsAboutARun(t *testing.T) {
	inBubble(t, connecttest.Options{}, func(t *testing.T, s *connecttest.Server, c *client) {
		run := &sparkpb.StreamingQueryInstanceId{Id: c.session, RunId: c.session}
		session(t, s, c).SetQueries(connecttest.Query{ID: run.Id, RunID: run.RunId, Recent: []string{"{1}", "{2}"}, Exception: "boom"})
		answer := func(command *sparkpb.StreamingQueryCommand) *sparkpb.StreamingQueryCommandResult {
			command.QueryId = run
			result, err := c.askAny(command)
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		last := answer(&sparkpb.StreamingQueryCommand{Command: &sparkpb.StreamingQueryCommand_LastProgress{LastProgress: true}})
		if got := last.GetRecentProgress().GetRecentProgressJson(); !slices.Equal(got, []string{"{2}"}) {
			t.Errorf("last progress: %v", got)
		}
		recent := answer(&sparkpb.StreamingQueryCommand{Command: &sparkpb.StreamingQueryCommand_RecentProgress{RecentProgress: true}})
		if got := recent.GetRecentProgress().GetRecentProgressJson(); len(got) != 2 {
			t.Errorf("recent progress: %v", got)
		}
		failure := answer(&sparkpb.StreamingQueryCommand{Command: &sparkpb.StreamingQueryCommand_Exception{Exception: true}})
		if got := failure.GetException(); got.GetExceptionMessage() != "boom" || got.GetErrorClass() != "STREAM_FAILED" {
			t.Errorf("exception: %v", got)
		}
		answer(&sparkpb.StreamingQueryCommand{Command: &sparkpb.StreamingQueryCommand_Stop{Stop: true}})
		if active := c.active(); len(active) != 0 {
			t.Errorf("active after stop: %v", active)
		}
	})
}

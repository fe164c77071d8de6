package connecttest_test

import (
	"errors"
	"io"

	"sparkbridge/connect/sparkpb"
)

// bus is an open listener bus, read over the clean ends of its streams.
type bus struct {
	client    *client
	operation string
	stream    responses
	first     *sparkpb.ExecutePlanResponse // the acknowledgement
	last      string                       // id of the last response that was read
	read      []*sparkpb.ExecutePlanResponse
}

// open sends an ADD and reads the acknowledgement. A busy server may need longer for that
// than one stream lasts; after two seconds it begins to report progress of the execution.
func (c *client) open() *bus {
	c.t.Helper()
	b := &bus{client: c}
	b.operation, b.stream = c.add(c.t.Context())
	for b.first = b.next(); b.first.GetExecutionProgress() != nil; {
		b.first = b.next()
	}
	if !b.first.GetStreamingQueryListenerEventsResult().GetListenerBusListenerAdded() {
		c.t.Fatalf("first frame of an ADD is %v, want the acknowledgement", b.first)
	}
	return b
}

func (b *bus) next() *sparkpb.ExecutePlanResponse {
	b.client.t.Helper()
	for {
		frame, err := b.stream.Recv()
		if errors.Is(err, io.EOF) {
			b.stream = b.client.reattach(b.client.t.Context(), b.operation, b.last)
			continue
		}
		if err != nil {
			b.client.t.Fatalf("read bus: %v", err)
		}
		b.last, b.read = frame.GetResponseId(), append(b.read, frame)
		return frame
	}
}

// event reads on to the next event.
func (b *bus) event() *sparkpb.ExecutePlanResponse {
	b.client.t.Helper()
	for {
		if frame := b.next(); len(frame.GetStreamingQueryListenerEventsResult().GetEvents()) > 0 {
			return frame
		}
	}
}

func addCommand() *sparkpb.Command {
	return busCommand(&sparkpb.StreamingQueryListenerBusCommand{
		Command: &sparkpb.StreamingQueryListenerBusCommand_AddListenerBusListener{AddListenerBusListener: true},
	})
}

func removeCommand() *sparkpb.Command {
	return busCommand(&sparkpb.StreamingQueryListenerBusCommand{
		Command: &sparkpb.StreamingQueryListenerBusCommand_RemoveListenerBusListener{RemoveListenerBusListener: true},
	})
}

func busCommand(command *sparkpb.StreamingQueryListenerBusCommand) *sparkpb.Command {
	return &sparkpb.Command{CommandType: &sparkpb.Command_StreamingQueryListenerBusCommand{StreamingQueryListenerBusCommand: command}}
}

// active lists the queries that run in the session.
func (c *client) active() []*sparkpb.StreamingQueryManagerCommandResult_StreamingQueryInstance {
	c.t.Helper()
	frames, err := drain(c.execute(c.t.Context(), "", &sparkpb.Command{CommandType: &sparkpb.Command_StreamingQueryManagerCommand{
		StreamingQueryManagerCommand: &sparkpb.StreamingQueryManagerCommand{
			Command: &sparkpb.StreamingQueryManagerCommand_Active{Active: true},
		},
	}}))
	if err != nil {
		c.t.Fatalf("ask for active queries: %v", err)
	}
	for _, frame := range frames {
		if result := frame.GetStreamingQueryManagerCommandResult(); result != nil {
			return result.GetActive().GetActiveQueries()
		}
	}
	c.t.Fatalf("active queries: no answer in %v", frames)
	return nil
}

// ask is the status command about one run.
func (c *client) ask(run *sparkpb.StreamingQueryInstanceId) (*sparkpb.StreamingQueryCommandResult, error) {
	return c.askAny(&sparkpb.StreamingQueryCommand{
		QueryId: run, Command: &sparkpb.StreamingQueryCommand_Status{Status: true},
	})
}

func (c *client) askAny(command *sparkpb.StreamingQueryCommand) (*sparkpb.StreamingQueryCommandResult, error) {
	frames, err := drain(c.execute(c.t.Context(), "", &sparkpb.Command{
		CommandType: &sparkpb.Command_StreamingQueryCommand{StreamingQueryCommand: command},
	}))
	for _, frame := range frames {
		if result := frame.GetStreamingQueryCommandResult(); result != nil {
			return result, err
		}
	}
	return nil, err
}

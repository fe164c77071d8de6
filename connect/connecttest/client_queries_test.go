package connecttest_test

import (
	"encoding/json"

	"github.com/google/uuid"

	"sparkbridge/connect/sparkpb"
)

// perform runs a command in a reattachable operation and reads its answer to the end.
func (c *client) perform(command *sparkpb.Command) ([]*sparkpb.ExecutePlanResponse, error) {
	c.t.Helper()
	return c.performAs(uuid.NewString(), command)
}

func (c *client) performAs(operation string, command *sparkpb.Command) ([]*sparkpb.ExecutePlanResponse, error) {
	c.t.Helper()
	stream := c.execute(c.t.Context(), operation, command)
	all, err := drain(stream)
	for err == nil && !complete(all) {
		var frames []*sparkpb.ExecutePlanResponse
		last := ""
		if len(all) > 0 {
			last = all[len(all)-1].GetResponseId()
		}
		frames, err = drain(c.reattach(c.t.Context(), operation, last))
		all = append(all, frames...)
	}
	return all, err
}

// rate starts a query over the rate source.
func rate(name, checkpoint string) *sparkpb.Command {
	start := &sparkpb.WriteStreamOperationStart{
		Input: rateSource(), Format: "noop", OutputMode: "append", QueryName: name, Options: map[string]string{},
		Trigger: &sparkpb.WriteStreamOperationStart_ProcessingTimeInterval{ProcessingTimeInterval: "100 milliseconds"},
	}
	if checkpoint != "" {
		start.Options["checkpointLocation"] = checkpoint
	}
	return &sparkpb.Command{CommandType: &sparkpb.Command_WriteStreamOperationStart{WriteStreamOperationStart: start}}
}

func rateSource() *sparkpb.Relation {
	format := "rate"
	return &sparkpb.Relation{Common: &sparkpb.RelationCommon{}, RelType: &sparkpb.Relation_Read{Read: &sparkpb.Read{
		IsStreaming: true, ReadType: &sparkpb.Read_DataSource_{DataSource: &sparkpb.Read_DataSource{Format: &format}},
	}}}
}

// start starts a query, which must be well.
func (c *client) start(command *sparkpb.Command) *sparkpb.WriteStreamOperationStartResult {
	c.t.Helper()
	frames, err := c.perform(command)
	if err != nil {
		c.t.Fatalf("start query: %v", err)
	}
	return started(frames)
}

func started(frames []*sparkpb.ExecutePlanResponse) *sparkpb.WriteStreamOperationStartResult {
	for _, frame := range frames {
		if result := frame.GetWriteStreamOperationStartResult(); result != nil {
			return result
		}
	}
	return nil
}

// keys are the fields of a JSON object.
func keys(document string) map[string]any {
	fields := map[string]any{}
	_ = json.Unmarshal([]byte(document), &fields) // no object has no fields
	return fields
}

func (c *client) stop(run *sparkpb.StreamingQueryInstanceId) {
	c.t.Helper()
	if _, err := c.askAny(&sparkpb.StreamingQueryCommand{QueryId: run, Command: &sparkpb.StreamingQueryCommand_Stop{Stop: true}}); err != nil {
		c.t.Fatalf("stop query: %v", err)
	}
}

// await waits for the end of a run in an operation of its own.
func (c *client) await(run *sparkpb.StreamingQueryInstanceId, ms int64) (terminated bool, err error) {
	c.t.Helper()
	frames, err := c.perform(&sparkpb.Command{CommandType: &sparkpb.Command_StreamingQueryCommand{StreamingQueryCommand: &sparkpb.StreamingQueryCommand{
		QueryId: run, Command: &sparkpb.StreamingQueryCommand_AwaitTermination{
			AwaitTermination: &sparkpb.StreamingQueryCommand_AwaitTerminationCommand{TimeoutMs: &ms},
		},
	}}})
	for _, frame := range frames {
		terminated = terminated || frame.GetStreamingQueryCommandResult().GetAwaitTermination().GetTerminated()
	}
	return terminated, err
}

// processAll waits until a run has no data left.
func (c *client) processAll(run *sparkpb.StreamingQueryInstanceId) error {
	c.t.Helper()
	_, err := c.perform(&sparkpb.Command{CommandType: &sparkpb.Command_StreamingQueryCommand{StreamingQueryCommand: &sparkpb.StreamingQueryCommand{
		QueryId: run, Command: &sparkpb.StreamingQueryCommand_ProcessAllAvailable{ProcessAllAvailable: true},
	}}})
	return err
}

func (c *client) awaitAny(ms int64) (terminated bool, err error) {
	c.t.Helper()
	frames, err := c.manage(&sparkpb.StreamingQueryManagerCommand{Command: &sparkpb.StreamingQueryManagerCommand_AwaitAnyTermination{
		AwaitAnyTermination: &sparkpb.StreamingQueryManagerCommand_AwaitAnyTerminationCommand{TimeoutMs: &ms},
	}})
	for _, frame := range frames {
		terminated = terminated || frame.GetStreamingQueryManagerCommandResult().GetAwaitAnyTermination().GetTerminated()
	}
	return terminated, err
}

func (c *client) manage(command *sparkpb.StreamingQueryManagerCommand) ([]*sparkpb.ExecutePlanResponse, error) {
	c.t.Helper()
	return c.perform(&sparkpb.Command{CommandType: &sparkpb.Command_StreamingQueryManagerCommand{StreamingQueryManagerCommand: command}})
}

// config asks for or changes a setting.
func (c *client) config(operation *sparkpb.ConfigRequest_Operation) (*sparkpb.ConfigResponse, error) {
	return c.rpc.Config(c.t.Context(), &sparkpb.ConfigRequest{SessionId: c.session, UserContext: c.context(), Operation: operation})
}

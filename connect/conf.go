package connect

import (
	"context"

	"sparkbridge/connect/sparkpb"
)

// Conf is the settings of a session, such as spark.sql.shuffle.partitions. A query
// keeps those with which it was started.
type Conf struct{ s *Session }

// Conf is the settings of the session.
func (s *Session) Conf() Conf { return Conf{s} }

// Set changes a setting. One that only the server's own configuration can change, or a
// value that Spark does not take, is an *Error.
func (c Conf) Set(ctx context.Context, key, value string) error {
	_, err := c.ask(ctx, "set "+key, &sparkpb.ConfigRequest_Operation{OpType: &sparkpb.ConfigRequest_Operation_Set{
		Set: &sparkpb.ConfigRequest_Set{Pairs: []*sparkpb.KeyValue{{Key: key, Value: &value}}},
	}})
	return err
}

// Unset gives a setting its default back.
func (c Conf) Unset(ctx context.Context, key string) error {
	_, err := c.ask(ctx, "unset "+key, &sparkpb.ConfigRequest_Operation{OpType: &sparkpb.ConfigRequest_Operation_Unset{
		Unset: &sparkpb.ConfigRequest_Unset{Keys: []string{key}},
	}})
	return err
}

// Get reads a setting. One that has neither a value nor a default is an *Error.
func (c Conf) Get(ctx context.Context, key string) (string, error) {
	pairs, err := c.ask(ctx, "get "+key, &sparkpb.ConfigRequest_Operation{OpType: &sparkpb.ConfigRequest_Operation_Get{
		Get: &sparkpb.ConfigRequest_Get{Keys: []string{key}},
	}})
	if err != nil || len(pairs) == 0 {
		return "", err
	}
	return pairs[0].GetValue(), nil
}

// Lookup reads a setting, and says whether it has a value or a default.
func (c Conf) Lookup(ctx context.Context, key string) (value string, ok bool, err error) {
	pairs, err := c.ask(ctx, "get "+key, &sparkpb.ConfigRequest_Operation{OpType: &sparkpb.ConfigRequest_Operation_GetOption{
		GetOption: &sparkpb.ConfigRequest_GetOption{Keys: []string{key}},
	}})
	if err != nil || len(pairs) == 0 || pairs[0].Value == nil {
		return "", false, err
	}
	return pairs[0].GetValue(), true, nil
}

// All reads all settings that have a value.
func (c Conf) All(ctx context.Context) (map[string]string, error) {
	pairs, err := c.ask(ctx, "get all settings", &sparkpb.ConfigRequest_Operation{OpType: &sparkpb.ConfigRequest_Operation_GetAll{
		GetAll: &sparkpb.ConfigRequest_GetAll{},
	}})
	if err != nil {
		return nil, err
	}
	settings := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		settings[pair.GetKey()] = pair.GetValue()
	}
	return settings, nil
}

// ask never creates the session, as the call itself would.
func (c Conf) ask(ctx context.Context, op string, operation *sparkpb.ConfigRequest_Operation) ([]*sparkpb.KeyValue, error) {
	var answer *sparkpb.ConfigResponse
	err := c.s.demand(ctx, op, func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) (err error) {
		answer, err = spark.Config(c.s.outgoing(ctx), &sparkpb.ConfigRequest{
			SessionId:                         c.s.ID(),
			ClientObservedServerSideSessionId: c.s.observedID(),
			UserContext:                       c.s.user(),
			ClientType:                        &c.s.clientType,
			Operation:                         operation,
		})
		c.s.observe(answer.GetServerSideSessionId())
		return err
	})
	for _, warning := range answer.GetWarnings() {
		c.s.log.Warn("spark warns of a setting", "op", op, "warning", warning)
	}
	return answer.GetPairs(), err
}

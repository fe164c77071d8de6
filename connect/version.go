package connect

import (
	"context"

	"sparkbridge/connect/sparkpb"
)

// SparkVersion asks for the version of Spark, such as 4.2.0. It never creates the
// session: one that is not there answers ErrSessionNotFound.
func (s *Session) SparkVersion(ctx context.Context) (version string, err error) {
	err = s.ask(ctx, "ask for spark version", func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) error {
		if err := s.probe(ctx, spark); err != nil {
			return err
		}
		version, err = s.analyze(ctx, spark)
		return err
	})
	return version, err
}

// analyze asks for the version, which makes the session where it is missing.
func (s *Session) analyze(ctx context.Context, spark sparkpb.SparkConnectServiceClient) (version string, err error) {
	r := s.analyzeRequest()
	r.Analyze = &sparkpb.AnalyzePlanRequest_SparkVersion_{SparkVersion: &sparkpb.AnalyzePlanRequest_SparkVersion{}}
	answer, err := spark.AnalyzePlan(s.outgoing(ctx), r)
	s.observe(answer.GetServerSideSessionId())
	return answer.GetSparkVersion().GetVersion(), err
}

func (s *Session) analyzeRequest() *sparkpb.AnalyzePlanRequest {
	return &sparkpb.AnalyzePlanRequest{
		SessionId:                         s.ID(),
		ClientObservedServerSideSessionId: s.observedID(),
		UserContext:                       s.user(),
		ClientType:                        &s.clientType,
	}
}

package connecttest

import (
	"maps"
	"slices"
	"strings"

	"sparkbridge/connect/sparkpb"
)

// config reads or changes the settings of a session. No setting has a default here.
func (s *Server) config(in *sparkpb.ConfigRequest) (*sparkpb.ConfigResponse, error) {
	session, err := s.findOrCreate(in.GetUserContext(), in.GetSessionId(), in.GetClientObservedServerSideSessionId())
	if err != nil {
		return nil, err
	}
	out := &sparkpb.ConfigResponse{SessionId: session.id, ServerSideSessionId: session.serverSide}
	switch op := in.GetOperation().GetOpType().(type) {
	case *sparkpb.ConfigRequest_Operation_Set:
		for _, pair := range op.Set.GetPairs() {
			session.settings[pair.GetKey()] = pair.GetValue()
		}
	case *sparkpb.ConfigRequest_Operation_Unset:
		for _, key := range op.Unset.GetKeys() {
			delete(session.settings, key)
		}
	case *sparkpb.ConfigRequest_Operation_Get:
		for _, key := range op.Get.GetKeys() {
			if _, ok := session.settings[key]; !ok {
				return nil, session.settingUnknown(key)
			}
			out.Pairs = append(out.Pairs, session.setting(key))
		}
	case *sparkpb.ConfigRequest_Operation_GetOption:
		for _, key := range op.GetOption.GetKeys() {
			out.Pairs = append(out.Pairs, session.setting(key))
		}
	case *sparkpb.ConfigRequest_Operation_GetAll:
		for _, key := range slices.Sorted(maps.Keys(session.settings)) {
			if strings.HasPrefix(key, op.GetAll.GetPrefix()) {
				out.Pairs = append(out.Pairs, session.setting(key))
			}
		}
	default:
		return nil, notPlayed(op)
	}
	return out, nil
}

// setting is a setting as it is answered: without a value where it is not set.
func (session *Session) setting(key string) *sparkpb.KeyValue {
	pair := &sparkpb.KeyValue{Key: key}
	if value, ok := session.settings[key]; ok {
		pair.Value = &value
	}
	return pair
}

func (session *Session) settingUnknown(key string) error {
	return session.server.sparkError("SQL_CONF_NOT_FOUND", "The SQL config \""+key+"\" cannot be found.", map[string]string{"sqlConf": key})
}

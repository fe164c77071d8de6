package connecttest

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"sparkbridge/connect/sparkpb"
)

// sql notes a statement. Nothing is run, and the answer is what Spark says of a SELECT: the
// relation to read it by.
func (session *Session) sql(op *operation, command *sparkpb.SqlCommand) error {
	session.statements = append(session.statements, command.GetSql())
	return op.answer(&sparkpb.ExecutePlanResponse{ResponseType: &sparkpb.ExecutePlanResponse_SqlCommandResult_{
		SqlCommandResult: &sparkpb.ExecutePlanResponse_SqlCommandResult{Relation: &sparkpb.Relation{
			Common:  &sparkpb.RelationCommon{},
			RelType: &sparkpb.Relation_Sql{Sql: &sparkpb.SQL{Query: command.GetSql(), Args: command.GetArgs()}},
		}},
	}})
}

// Statements are the SQL statements that were run in the session, in order.
func (session *Session) Statements() []string {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	return append([]string(nil), session.statements...)
}

func (session *Session) createView(op *operation, command *sparkpb.CreateDataFrameViewCommand) error {
	name := strings.ToLower(command.GetName())
	if _, exists := session.views[name]; exists && !command.GetReplace() {
		return session.server.classError("TEMP_TABLE_OR_VIEW_ALREADY_EXISTS", "Cannot create the temporary view `"+command.GetName()+"` because it already exists.")
	}
	session.views[name] = command.GetInput()
	op.addProgress()
	op.finish()
	return nil
}

// View is what a temporary view reads; nil where there is no such view.
func (session *Session) View(name string) *sparkpb.Relation {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	return session.views[strings.ToLower(name)]
}

// streams says whether a relation reads a stream, itself or by a view that its SQL names.
func (session *Session) streams(relation *sparkpb.Relation) bool {
	found := false
	visit(relation.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		switch r := m.(type) {
		case *sparkpb.Read:
			view := session.views[strings.ToLower(r.GetNamedTable().GetUnparsedIdentifier())]
			found = found || r.GetIsStreaming() || view != nil && session.streams(view)
		case *sparkpb.SQL:
			for _, word := range strings.FieldsFunc(strings.ToLower(r.GetQuery()), func(c rune) bool { return strings.ContainsRune(" \t\n,;()`.", c) }) {
				view := session.views[word]
				found = found || view != nil && session.streams(view)
			}
		}
	})
	return found
}

// visit shows a message and those in its fields.
func visit(m protoreflect.Message, see func(protoreflect.ProtoMessage)) {
	see(m.Interface())
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Message() != nil && !field.IsMap() && !field.IsList() {
			visit(value.Message(), see)
		}
		return true
	})
}

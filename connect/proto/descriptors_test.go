//go:build integration

// Package proto_test holds the .proto files of this folder against Spark's own.
package proto_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
	"sparkbridge/integration/servers"
)

const (
	ours   = "sparkbridge.connect.v1."
	sparks = "spark.connect."
)

// missing names what a version of Spark does not have yet; the server ignores such a
// field. Nothing is missing today.
var missing = map[string][]protoreflect.FullName{
	"4.2": {},
	"4.0": {},
}

func TestEveryMessageIsSparks(t *testing.T) {
	for version, allowed := range missing {
		t.Run(version, func(t *testing.T) {
			spark := protocol(t, version)
			c := comparison{t: t, spark: spark, missing: allowed}
			c.files()
			if c.fields < 100 {
				t.Errorf("compared %d fields only: the comparison does not see the messages", c.fields)
			}
			for _, name := range c.missing {
				t.Errorf("%s is listed as missing in Spark %s, but it is there", name, version)
			}
		})
	}
}

// protocol is that of the installed pyspark of a line of Spark releases.
func protocol(t *testing.T, version string) *protoregistry.Files {
	t.Helper()
	pythons, err := filepath.Glob(filepath.Join(servers.Cache(), "spark-"+version+".*", "bin", "python"))
	if err != nil || len(pythons) == 0 {
		t.Fatalf("no pyspark %s in %s: run integration/servers/fetch.py spark-%s", version, servers.Cache(), version)
	}
	spark, err := connecttest.SparkProtocol(t.Context(), slices.Max(pythons))
	if err != nil {
		t.Fatal(err)
	}
	return spark
}

type comparison struct {
	t       *testing.T
	spark   *protoregistry.Files
	missing []protoreflect.FullName // what is allowed to be missing and was not found so yet
	fields  int
}

func (c *comparison) files() {
	for _, file := range []protoreflect.FileDescriptor{
		sparkpb.File_sparkbridge_connect_v1_service_proto,
		sparkpb.File_sparkbridge_connect_v1_streaming_proto,
		sparkpb.File_sparkbridge_connect_v1_plan_proto,
	} {
		c.messages(file.Messages())
		c.enums(file.Enums())
	}
}

func (c *comparison) messages(messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		mine := messages.Get(i)
		if theirs, ok := c.find(mine).(protoreflect.MessageDescriptor); ok {
			c.message(mine, theirs)
		}
		c.messages(mine.Messages())
		c.enums(mine.Enums())
	}
}

func (c *comparison) message(mine, theirs protoreflect.MessageDescriptor) {
	for i := range mine.Fields().Len() {
		field := mine.Fields().Get(i)
		c.fields++
		counterpart := theirs.Fields().ByNumber(field.Number())
		if counterpart == nil {
			if !c.mayMiss(field.FullName()) {
				c.t.Errorf("%s: Spark has no field %d", field.FullName(), field.Number())
			}
			continue
		}
		if got, want := describe(field), describe(counterpart); got != want {
			c.t.Errorf("%s:\n  is    %s\n  Spark %s", field.FullName(), got, want)
		}
	}
}

func (c *comparison) enums(enums protoreflect.EnumDescriptors) {
	for i := range enums.Len() {
		mine := enums.Get(i)
		theirs, ok := c.find(mine).(protoreflect.EnumDescriptor)
		if !ok {
			continue
		}
		for v := range mine.Values().Len() {
			value := mine.Values().Get(v)
			counterpart := theirs.Values().ByNumber(value.Number())
			if (counterpart == nil || counterpart.Name() != value.Name()) && !c.mayMiss(value.FullName()) {
				c.t.Errorf("%s = %d: Spark has %v", value.FullName(), value.Number(), counterpart)
			}
		}
	}
}

// find is the descriptor in Spark's package with the name of one in ours.
func (c *comparison) find(mine protoreflect.Descriptor) protoreflect.Descriptor {
	theirs, err := c.spark.FindDescriptorByName(protoreflect.FullName(translate(mine.FullName())))
	if err != nil && !c.mayMiss(mine.FullName()) {
		c.t.Errorf("%s: %v", mine.FullName(), err)
	}
	return theirs
}

func (c *comparison) mayMiss(name protoreflect.FullName) bool {
	i := slices.Index(c.missing, name)
	if i >= 0 {
		c.missing = slices.Delete(slices.Clone(c.missing), i, i+1)
	}
	return i >= 0
}

// describe is everything about a field that shows on the wire or in its meaning.
func describe(f protoreflect.FieldDescriptor) string {
	text := fmt.Sprintf("%s = %d, %v %v, presence %v, packed %v", f.Name(), f.Number(), f.Cardinality(), f.Kind(), f.HasPresence(), f.IsPacked())
	if message := f.Message(); message != nil {
		text += ", " + translate(message.FullName())
	}
	if enum := f.Enum(); enum != nil {
		text += ", " + translate(enum.FullName())
	}
	if oneof := f.ContainingOneof(); oneof != nil {
		text += fmt.Sprintf(", oneof %s (synthetic %v)", oneof.Name(), oneof.IsSynthetic())
	}
	return text
}

func translate(name protoreflect.FullName) string {
	if rest, ok := strings.CutPrefix(string(name), ours); ok {
		return sparks + rest
	}
	return string(name)
}

func TestEveryMethodIsSparks(t *testing.T) {
	for version := range missing {
		t.Run(version, func(t *testing.T) {
			spark := protocol(t, version)
			found, err := spark.FindDescriptorByName(protoreflect.FullName(sparkpb.ServiceName))
			if err != nil {
				t.Fatal(err)
			}
			methods := found.(protoreflect.ServiceDescriptor).Methods()
			for _, m := range sparkpb.ServiceDesc.Methods {
				if method := methods.ByName(protoreflect.Name(m.MethodName)); method == nil || method.IsStreamingServer() {
					t.Errorf("unary %s: Spark has %v", m.MethodName, method)
				}
			}
			for _, s := range sparkpb.ServiceDesc.Streams {
				if method := methods.ByName(protoreflect.Name(s.StreamName)); method == nil || !method.IsStreamingServer() {
					t.Errorf("streaming %s: Spark has %v", s.StreamName, method)
				}
			}
		})
	}
}

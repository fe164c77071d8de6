package connect

import (
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"sparkbridge/connect/sparkpb"
)

func TestStackTrace(t *testing.T) {
	for name, test := range map[string]struct{ details, want string }{
		"none": {`errors {message: "lost"}`, ""},
		"with its cause": {`root_error_idx: 1
			errors {error_type_hierarchy: ["java.io.IOException", "java.lang.Exception"] message: "disk full"
				stack_trace {declaring_class: "a.Disk" method_name: "write" file_name: "Disk.java" line_number: 7}}
			errors {message: "cannot write" cause_idx: 0 stack_trace {declaring_class: "b.Sink" method_name: "add"}}`,
			"cannot write\n\tat b.Sink.add(Unknown Source)\nCaused by: java.io.IOException: disk full\n\tat a.Disk.write(Disk.java:7)\n"},
		"round and round": {`root_error_idx: 0 errors {message: "a" cause_idx: 1} errors {message: "b" cause_idx: 0}`, "a\nCaused by: b\n"},
		"nowhere":         {`root_error_idx: 3 errors {message: "a"}`, ""},
		"cause nowhere":   {`root_error_idx: 0 errors {message: "a" cause_idx: -4}`, "a\n"},
	} {
		details := new(sparkpb.FetchErrorDetailsResponse)
		if err := prototext.Unmarshal([]byte(test.details), details); err != nil {
			t.Fatal(err)
		}
		if got := stackTrace(causes(details)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

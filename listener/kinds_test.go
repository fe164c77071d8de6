package listener

import (
	"strings"
	"testing"
)

func TestNamesOfKindsAndOutcomes(t *testing.T) {
	for _, k := range kinds {
		if got, err := ParseKind(string(k)); got != k || err != nil {
			t.Errorf("%s: %q, %v", k, got, err)
		}
	}
	for _, o := range outcomes {
		if got, err := ParseOutcome(string(o)); got != o || err != nil {
			t.Errorf("%s: %q, %v", o, got, err)
		}
	}
	if _, err := ParseKind("failed"); err == nil || !strings.Contains(err.Error(), `kind "failed" is not known: use started, progress,`) {
		t.Errorf("an outcome as a kind: %v", err)
	}
	if _, err := ParseOutcome(""); err == nil {
		t.Error("no outcome is one")
	}
}

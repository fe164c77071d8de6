//go:build integration

package servers

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// requireState compares a process's state with Linux's letter for it.
func requireState(t *testing.T, pid int, want string) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	requireNoError(t, err)
	_, fields, _ := strings.Cut(string(stat), ") ")
	if state, _, _ := strings.Cut(fields, " "); state != want {
		t.Errorf("process %d is in state %s, want %s", pid, state, want)
	}
}

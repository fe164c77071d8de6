//go:build integration

package servers

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// requireState waits until a process has the state with Linux's letter.
func requireState(t *testing.T, pid int, want string) {
	t.Helper()
	for began := time.Now(); ; {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		requireNoError(t, err)
		_, fields, _ := strings.Cut(string(stat), ") ")
		state, _, _ := strings.Cut(fields, " ")
		if state == want {
			return
		}
		if time.Since(began) > 5*time.Second {
			t.Fatalf("process %d is in state %s, want %s", pid, state, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sparkbridge/integration/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDemoSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "60": time.Minute, "1": time.Second} {
		if got, err := demoSeconds(text); err != nil || got != want {
			t.Errorf("%q: got %s and error %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "-5", "60s", "1.5", " ", "99999999999999999999"} {
		if got, err := demoSeconds(text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: got %s and error %v", text, got, err)
		}
	}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&failedError{"/tmp/x", errors.New("Spark has ended")}, "All logs are in /tmp/x"},
		{&failedError{"/tmp/x", &servers.NotFetchedError{Part: "spark-4.2.0", Target: "spark-4.2"}}, "fetch.py java spark-4.2"},
		{errInterrupted, "interrupted"},
		{os.ErrPermission, "permission denied"},
	} {
		var said bytes.Buffer
		explain(&said, c.err)
		if !strings.Contains(said.String(), c.want) || !strings.Contains(said.String(), "demo: ") {
			t.Errorf("%v: said %q, want %q in it", c.err, said.String(), c.want)
		}
	}
}

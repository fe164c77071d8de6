//go:build integration

package connect

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// speak writes lines to whoever connects, until the test ends.
func speak(t *testing.T, lines string) (port int) {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var speakers sync.WaitGroup
	over := make(chan struct{})
	speakers.Go(func() {
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}
			speakers.Go(func() {
				if _, err := conn.Write([]byte(lines)); err != nil {
					t.Errorf("write to Spark: %v", err)
				}
				<-over
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		close(over)
		_ = socket.Close()
		speakers.Wait()
	})
	return socket.Addr().(*net.TCPAddr).Port
}

func fromASocket(t *testing.T, s *Session) {
	lines := s.ReadStream().Format("socket").Option("host", "127.0.0.1").Option("port", strconv.Itoa(speak(t, "to be\nor not\n"))).Load()
	err := RunQuery(t.Context(), lines.WriteStream().Format("memory").QueryName("spoken"), func(ctx context.Context, _ *StreamingQuery) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
		defer cancel()
		for {
			rows, err := s.Table("spoken").Collect(ctx)
			if err != nil {
				return err
			}
			if len(rows) == 2 {
				is(t, "socket", collect(t, s.Table("spoken").Select("value"), nil), `{"value":"to be"}`, `{"value":"or not"}`)
				return nil
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

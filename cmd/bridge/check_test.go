package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"sparkbridge/connect/connecttest"
)

const jobSession = "5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e11"

// bridgeCheck runs the command as a user does.
func bridgeCheck(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	t.Setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", "")
	t.Setenv("SPARK_USER", "")
	var out, errs bytes.Buffer
	if got := execute(nil, append([]string{"check"}, args...), &out, &errs); got != code {
		t.Errorf("exit code %d, want %d\n%s%s", got, code, &out, &errs)
	}
	t.Logf("bridge check %s\n%s%s", strings.Join(args, " "), &out, &errs)
	return out.String(), errs.String()
}

func TestCheckConnect(t *testing.T) {
	spark := connecttest.Start(t, connecttest.Options{Addr: "127.0.0.1:0", Token: "swordfish"})
	job, err := spark.CreateSession("etl", jobSession)
	if err != nil {
		t.Fatal(err)
	}
	job.SetQueries(connecttest.Query{ID: "q", RunID: "r", Name: "orders"})
	broker := startNATS(t)
	receiver := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(receiver.Close)
	remote := "sc://" + spark.Addr() + "/;user_id=etl;session_id=" + jobSession + ";use_ssl=false;token="
	sinks := []string{"--nats", broker, "--webhook", receiver.URL + "/hush"}

	out, errs := bridgeCheck(t, 1, append(sinks, "--connect", "--remote", remote+"swordfish")...)
	for _, part := range []string{
		"source default: sc://" + spark.Addr(), "  ok       token ", "another client", "orders (q)", "no stream takes spark.default.*.*", "nothing was sent",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing", part)
		}
	}
	if strings.Contains(out, "swordfish") || strings.Contains(out, "hush") || strings.Contains(out, "All would work") {
		t.Error("it shows a secret, or says that all would work")
	}
	if errs != "bridge: 1 of 3 sources and sinks would not work now: see what is marked as a problem\n" {
		t.Errorf("it says %q", errs)
	}

	out, errs = bridgeCheck(t, 0, "--connect", "--remote", remote+"swordfish", "--webhook", receiver.URL)
	if !strings.Contains(out, "All would work. No bus was taken, and nothing was sent.") || errs != "" {
		t.Error("it does not say that all would work")
	}
	out, _ = bridgeCheck(t, 2, "--connect", "-o", "json", "--remote", remote+"guess", "--webhook", receiver.URL)
	var report struct {
		Works   bool
		Sources []struct {
			Name     string
			Findings []struct{ State, About, Text string }
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Works || len(report.Sources) != 1 || len(report.Sources[0].Findings) != 2 ||
		report.Sources[0].Findings[1].State != "problem" || report.Sources[0].Findings[1].About != "token" {
		t.Errorf("report %+v, %v", report, err)
	}
	if spark.Adds()+spark.Removes() > 0 {
		t.Error("the bus was touched")
	}
}

// The time-out holds for a server that accepts and says nothing.
func TestCheckConnectEndsInTime(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	began := time.Now()
	out, _ := bridgeCheck(t, 1, "--connect", "--timeout", "200ms", "--remote", "sc://"+silent.Addr().String()+"/;user_id=etl;session_id="+jobSession,
		"--kafka", silent.Addr().String(), "--nats", "nats://"+silent.Addr().String(), "--webhook", "https://"+silent.Addr().String())
	if n := strings.Count(out, "  problem "); n != 4 {
		t.Errorf("%d problems, want one of each", n)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestCheckFlags(t *testing.T) {
	for _, c := range [][]string{
		{"use text or json", "--connect", "-o", "yaml"},
		{"use yaml or json", "-o", "text"},
		{"--timeout is for --connect", "--timeout", "1s"},
		{"leaves no time", "--connect", "--timeout", "0s"},
	} {
		if out, errs := bridgeCheck(t, 2, c[1:]...); !strings.Contains(errs, c[0]) || out != "" {
			t.Errorf("%v: %q", c, errs)
		}
	}
}

func startNATS(t *testing.T) (url string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("nats-server did not start")
	}
	return s.ClientURL()
}

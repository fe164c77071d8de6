//go:build integration

// Package examples tries the programs in its folders as people run them, on real servers.
package examples

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"sparkbridge/connect"
	"sparkbridge/integration/servers"
)

// world is the server that the programs use, and a session to look at what they did.
type world struct {
	t      *testing.T
	bin    string
	remote string
	spark  *connect.Session
}

func TestExamples(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./...").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	server, err := servers.StartSpark(ctx, servers.SparkOptions{Dir: t.TempDir(), Delta: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop Spark: %v", err)
		}
	})
	spark, err := connect.Open(ctx, server.Remote())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := spark.Close(); err != nil {
			t.Errorf("close session: %v", err)
		}
	})
	for name, try := range map[string]func(*testing.T, *world){
		"rate-to-memory": rateToMemory, "windowed-counts": windowedCounts, "change-feed": changeFeed, "files": files, "kafka": kafkaWords,
	} {
		t.Run(name, func(t *testing.T) { try(t, &world{t, bin, server.Remote(), spark}) })
	}
}

// run runs a program to its end and returns what it printed.
func (w *world) run(name string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(w.bin, name), append([]string{"-remote", w.remote}, args...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func (w *world) sql(statement string) []string {
	w.t.Helper()
	df, err := w.spark.SQL(w.t.Context(), statement)
	if err != nil {
		w.t.Fatalf("%s: %v", statement, err)
	}
	rows, err := df.Collect(w.t.Context())
	if err != nil {
		w.t.Fatalf("%s: %v", statement, err)
	}
	var texts []string
	for _, row := range rows {
		texts = append(texts, string(row))
	}
	return texts
}

func rateToMemory(t *testing.T, w *world) {
	got := w.run("rate-to-memory")
	for _, want := range []string{"|value|", "|    0|", "|    2|", "|    8|"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func windowedCounts(t *testing.T, w *world) {
	got := w.run("windowed-counts", "-windows", "3")
	if lines := strings.Count(got, " rows\n"); lines < 3 || !strings.Contains(got, "even true ") || !strings.Contains(got, ", watermark ") {
		t.Errorf("%d windows:\n%s", lines, got)
	}
}

func changeFeed(t *testing.T, w *world) {
	w.sql("CREATE TABLE orders (id INT, state STRING) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
	w.sql("INSERT INTO orders VALUES (1, 'new'), (2, 'new')")
	args := []string{"-from", "orders", "-to", "changes", "-checkpoint", filepath.Join(t.TempDir(), "checkpoint"), "-since", "1"}
	if got := w.run("change-feed", args...); got != "caught up: 2 changes\n" {
		t.Errorf("first run: %q", got)
	}
	w.sql("UPDATE orders SET state = 'paid' WHERE id = 1")
	w.run("change-feed", args...)
	want := []string{`{"id":1,"state":"new","_change_type":"insert"}`, `{"id":2,"state":"new","_change_type":"insert"}`, `{"id":1,"state":"paid","_change_type":"update_postimage"}`}
	if got := w.sql("SELECT id, state, _change_type FROM changes ORDER BY _commit_version, id"); !slices.Equal(got, want) {
		t.Errorf("changes\n got %q\nwant %q", got, want)
	}
}

func files(t *testing.T, w *world) {
	dir := t.TempDir()
	in, out, checkpoint := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "checkpoint")
	if err := os.Mkdir(in, 0o755); err != nil {
		t.Fatal(err)
	}
	for day := 1; day <= 3; day++ {
		text := fmt.Sprintf(`{"id":%d,"day":"2026-11-0%d","amount":1.50}`+"\n", day, day)
		if err := os.WriteFile(filepath.Join(in, fmt.Sprintf("%d.json", day)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := w.run("files", "-in", in, "-out", out, "-checkpoint", checkpoint)
	for batch := range 3 {
		if want := fmt.Sprintf(`batch %d: {"n":1,"amount":1.5`, batch); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if days, err := filepath.Glob(filepath.Join(out, "day=*")); err != nil || len(days) != 3 {
		t.Errorf("partitions %q, %v", days, err)
	}
	if again := w.run("files", "-in", in, "-out", out, "-checkpoint", checkpoint); again != "" {
		t.Errorf("run again, it says %q", again)
	}
}

func kafkaWords(t *testing.T, w *world) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	broker, err := servers.StartKafka(ctx, servers.KafkaOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Stop(); err != nil {
			t.Errorf("stop Kafka: %v", err)
		}
	})
	for _, topic := range []string{"sentences", "words"} {
		if err := broker.CreateTopic(ctx, topic, 1); err != nil {
			t.Fatal(err)
		}
	}
	writer := &kafka.Writer{Addr: kafka.TCP(broker.Brokers()...), Topic: "sentences", RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond}
	if err := writer.WriteMessages(ctx, kafka.Message{Value: []byte("to be or not to be")}); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Error(err)
	}

	var errs bytes.Buffer
	program := exec.CommandContext(ctx, filepath.Join(w.bin, "kafka"), "-remote", w.remote,
		"-brokers", strings.Join(broker.Brokers(), ","), "-checkpoint", filepath.Join(t.TempDir(), "checkpoint"))
	program.Stderr = &errs
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	counts := map[string]string{}
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: broker.Brokers(), Topic: "words", MaxWait: 100 * time.Millisecond})
	for len(counts) < 4 {
		m, err := reader.ReadMessage(ctx)
		if err != nil {
			t.Fatalf("read counts: %v", err)
		}
		counts[string(m.Key)] = string(m.Value)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if counts["be"] != "2" || counts["or"] != "1" {
		t.Errorf("counts %v", counts)
	}
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			t.Fatalf("it ended without a word: %v\n%s", lines.Err(), &errs)
		}
		if lines.Text() == "1 sentences" {
			break
		}
	}
	if err := program.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("after an interrupt: %v\n%s", err, &errs)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"sparkbridge/configs"
	"sparkbridge/connect/connecttest"
	"sparkbridge/internal/bridge"
	"sparkbridge/internal/tail"
	"sparkbridge/sinks/sinktest"
)

// Every secret of this configuration begins with hush-, and the credential in the events
// of its job is leak-. Signing secrets are base64, as "aHVza" is of "hush".
const secretive = `
sources:
  - {name: etl, remote: "sc://%[1]s/;user_id=etl;session_id=` + jobSession + `;x-key=hush-header", token: hush-right, attach: at_once, poll_interval: 100ms}
  - {name: away, remote: "sc://localhost:1/;user_id=u;session_id=00000000-0000-4000-8000-000000000002;token=hush-token;x-key=hush-header", required: false}
sinks:
  - {name: open, redact: false, webhook: {url: "http://etl:hush-pw@%[2]s/open/hush-path?k=hush-query", secret: "whsec_aHVzaC1odXNoLWh1c2gtaHVzaC1odXNo"}}
  - {name: masked, webhook: {url: "http://%[2]s/masked", secrets: ["whsec_aHVzaC1odXNoLWh1c2gtaHVzaC1odXNo"], headers: {x-key: hush-key}}}
  - {name: raw, format: raw, webhook: {url: "http://%[2]s/raw"}}
  - {name: batch, webhook: {url: "http://%[2]s/batch", batch: {max_events: 10}}}
  - {name: refusing, webhook: {url: "http://%[2]s/refusing/hush-path", bearer: hush-bearer}}
  - {name: basic, webhook: {url: "http://%[2]s/basic", basic: {user: etl, password: hush-pw}}}
  - {name: away, webhook: {url: "http://etl:hush-pw@localhost:1/hush-path"}}
  - {name: nats-url, nats: {url: "nats://etl:hush-pw@%[3]s"}}
  - {name: nats-token, nats: {url: "nats://%[3]s", token: hush-token}}
  - {name: nats-user, nats: {url: "nats://%[3]s", user: etl, password: hush-pw}}
  - {name: nats-key, nats: {url: "nats://%[3]s", nkey_file: %[4]s}}
  - {name: nats-creds, nats: {url: "nats://%[3]s", creds_file: %[4]s}}
  - {name: kafka, kafka: {brokers: ["localhost:1"], sasl: {mechanism: scram-sha-256, username: etl, password: hush-pw}}}
  - {name: cert, webhook: {url: "https://%[2]s", tls: {cert_file: %[6]s, key_file: %[7]s}}}
http: {listen: 127.0.0.1:0, token: hush-http}
journal: {dir: %[5]s}
log: {level: debug, format: json}
`

// repeater is a receiver that repeats what it was sent, and keeps it.
type repeater struct {
	mu  sync.Mutex
	got map[string]string // by the first part of the path
}

func (r *repeater) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := strings.Split(req.URL.Path, "/")[1]
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[name] += string(body)
	switch name {
	case "refusing":
		w.WriteHeader(http.StatusUnprocessableEntity)
	case "basic":
		w.WriteHeader(http.StatusUnauthorized)
	}
	fmt.Fprintf(w, "%s %s: %v", req.Method, req.URL, req.Header)
}

func (r *repeater) received(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[name]
}

// lockedBuffer is a buffer that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A bridge with secrets in all places, most of which are refused, shows none of them,
// whoever asks it for whatever. What its job says in an exception leaves it masked.
func TestSecretsNeverShow(t *testing.T) {
	t.Setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", "")
	receiver := &repeater{got: map[string]string{}}
	hook := httptest.NewServer(receiver)
	defer hook.Close()
	spark := connecttest.Start(t, connecttest.Options{Addr: "127.0.0.1:0", Token: "hush-right"})
	job, err := spark.CreateSession("etl", jobSession)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, journal, creds := filepath.Join(dir, "b.yaml"), filepath.Join(dir, "j"), filepath.Join(dir, "user.creds")
	write(t, creds, newCreds(t))
	certFile, keyFile := sinktest.NewAuthority(t).Issue(t, "bridge")
	write(t, file, fmt.Sprintf(secretive, spark.Addr(), strings.TrimPrefix(hook.URL, "http://"), strings.TrimPrefix(startGuardedNATS(t), "nats://"), creds, journal, certFile, keyFile))

	shown := map[string]string{}
	shown["check"] = ran(t, 0, "check", "-c", file)
	shown["check --connect"] = ran(t, -1, "check", "--connect", "-c", file, "--timeout", "5s") + ran(t, -1, "check", "--connect", "-c", file, "-o", "json", "--timeout", "5s")

	cfg, err := configs.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{creds, certFile, keyFile} { // from now on they cannot be used
		write(t, path, "hush-file\n")
	}
	shown["check of files"] = ran(t, 2, "check", "-c", file)
	logged := &lockedBuffer{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- bridge.Run(ctx, cfg, newLogger(logged, cfg.Log), "test") }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the bridge ended: %v", err)
		}
	}()
	soon(t, "the bus is ours", func() bool { return strings.Contains(logged.String(), `"state":"attached"`) })
	job.Terminated(`{"id":"0b21823b-9394-494a-8630-2291245281a7","runId":"18d69e6f-5afa-4c9d-8f94-3ca41012ce96","exception":"boom: jdbc:x://h?password=leak-pw&x=y\n\tat a.b(C:1)","errorClassOnException":null}`)
	soon(t, "the end has arrived", func() bool {
		return !slices.ContainsFunc([]string{"open", "masked", "raw", "batch"}, func(name string) bool { return !strings.Contains(receiver.received(name), "boom") })
	})
	soon(t, "all others are refused", func() bool {
		return strings.Contains(ran(t, 0, "dlq", "list", "-c", file), "422") && strings.Count(get(t, logged, "/api/v1/status"), `"failed":0`) < 6
	})

	for _, path := range []string{"/", "/metrics", "/readyz?verbose", "/livez", "/api/v1/status", "/api/v1/events?last=100"} {
		shown[path] = get(t, logged, path)
	}
	letter := regexp.MustCompile(`refusing +(\d+)`).FindAllStringSubmatch(ran(t, 0, "dlq", "list", "-c", file), -1)
	for _, l := range letter {
		shown["dlq show"] += ran(t, 0, "dlq", "show", l[1], "--sink", "refusing", "-c", file)
	}
	shown["dlq list"] = ran(t, 0, "dlq", "list", "-c", file) + ran(t, 0, "dlq", "list", "-o", "json", "-c", file)
	shown["journal info"] = ran(t, 0, "journal", "info", "-c", file)
	shown["replay"] = ran(t, 0, "replay", "--sink", "masked", "--since", "1h", "--dry-run", "-c", file)
	shown["log"] = logged.String()
	for what, text := range shown {
		wantHushed(t, what, text)
		if strings.Contains(text, "leak-") {
			t.Errorf("%s shows the credential of the job: %s", what, text)
		}
	}
	for what, part := range map[string]string{
		"log": "422 Unprocessable Entity", "dlq list": "422 Unprocessable Entity", "dlq show": `password=***`, "/api/v1/events?last=100": `"sparkredacted":true`,
		"check": "***", "check of files": "has no seed of a user in it", "check --connect": "problem", "/api/v1/status": "401 Unauthorized", "/metrics": "sparkbridge_sink",
	} {
		if !strings.Contains(shown[what], part) {
			t.Errorf("%s does not say %s:\n%s", what, part, shown[what])
		}
	}

	// On disk: what Spark has said, and no secret of ours.
	for _, path := range []string{"*.log", "*"} {
		files, _ := filepath.Glob(filepath.Join(journal, path))
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil {
				wantHushed(t, f, string(b))
			}
		}
	}
	if text := ran(t, 0, "journal", "export", "-c", file); !strings.Contains(text, "password=leak-pw&x=y") || strings.Contains(text, "sparkredacted") {
		t.Errorf("the journal does not have what Spark has said: %s", text)
	}

	// What has left: masked in every form, but where it is to be had.
	for _, name := range []string{"masked", "raw", "batch", "refusing"} {
		text := receiver.received(name)
		if strings.Contains(text, "leak-") || !strings.Contains(text, `jdbc:x://h?password=***&x=y\n\tat a.b(C:1)`) || name != "raw" && !strings.Contains(text, `"sparkredacted":true`) {
			t.Errorf("%s got %s", name, text)
		}
	}
	if text := receiver.received("open"); !strings.Contains(text, "password=leak-pw&x=y") || strings.Contains(text, "sparkredacted") {
		t.Errorf("open got %s", text)
	}
}

// wantHushed wants no secret of the configuration in a text, nor what is made of one.
func wantHushed(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range []string{"hush-", "hush%", base64.StdEncoding.EncodeToString([]byte("etl:hush-"))[:11], "aHVza"} {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("%s shows a secret: …%s…", what, text[max(0, at-100):min(len(text), at+100)])
		}
	}
}

// ran runs the program and returns all that it prints. A code of -1 is any.
func ran(t *testing.T, code int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if got := execute(nil, args, &out, &errs); code >= 0 && got != code {
		t.Fatalf("bridge %s: exit code %d\n%s%s", strings.Join(args, " "), got, &out, &errs)
	}
	return out.String() + errs.String()
}

// get asks the bridge that has logged its address, for a while where the answer goes on.
func get(t *testing.T, logged *lockedBuffer, path string) string {
	t.Helper()
	found := regexp.MustCompile(`"url":"(http://[^"]+)"`).FindStringSubmatch(logged.String())
	if found == nil {
		t.Fatalf("no address in %s", logged)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, found[1]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer hush-http")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body) // a stream ends with ctx
	if res.StatusCode == http.StatusUnauthorized {
		t.Errorf("%s wants another token", path)
	}
	return string(body)
}

func soon(t *testing.T, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !true(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newCreds makes a user that no server knows, and returns its credentials, which have its
// nkey in them too.
func newCreds(t *testing.T) string {
	t.Helper()
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	claims, err := jwt.NewUserClaims(public).Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(claims, seed)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// startGuardedNATS starts a server that lets in none of the sinks.
func startGuardedNATS(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, Username: "other", Password: "another"})
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

// What is printed of a session without a bridge ends up in tickets too.
func TestTailOfASessionMasks(t *testing.T) {
	t.Setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", "")
	t.Setenv("SPARK_USER", "")
	spark := connecttest.Start(t, connecttest.Options{Addr: "127.0.0.1:0"})
	job, err := spark.CreateSession("etl", jobSession)
	if err != nil {
		t.Fatal(err)
	}
	job.SetQueries(connecttest.Query{ID: "0b21823b-9394-494a-8630-2291245281a7", RunID: "18d69e6f-5afa-4c9d-8f94-3ca41012ce96", Name: "orders"})
	ctx, stop := context.WithCancel(t.Context())
	out := &lockedBuffer{}
	tailed := &tailing{remote: "sc://" + spark.Addr() + "/;user_id=etl;session_id=" + jobSession, bus: true}
	ended := make(chan error, 1)
	go func() { ended <- tailed.session(ctx, &tail.Printer{W: out, JSON: true}, slog.New(slog.DiscardHandler)) }()
	soon(t, "the bus is taken", func() bool { return strings.Contains(out.String(), `"attached"`) })
	job.Terminated(`{"id":"0b21823b-9394-494a-8630-2291245281a7","runId":"18d69e6f-5afa-4c9d-8f94-3ca41012ce96","exception":"boom password=leak-pw","errorClassOnException":null}`)
	soon(t, "the end is printed", func() bool { return strings.Contains(out.String(), "boom") })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := out.String(); !strings.Contains(text, "boom password=***") || strings.Contains(text, "leak-") {
		t.Errorf("it prints %s", text)
	}
}

package webhook_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"sparkbridge/sinks/webhook"
)

func TestValidate(t *testing.T) {
	for _, good := range []string{"http://localhost", "https://u:p@example.org:8443/a?b=c#d", "http://[::1]:80/x"} {
		if err := (webhook.Config{URL: good, Timeout: time.Second}).Validate(); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"":                         "url: is missing; give the address",
		"example.org/secret":       `url: "/…" has scheme ""; write http://… or https://…`,
		"ftp://u:secret@host/x":    `url: "ftp://host/…" has scheme "ftp"`,
		"mailto:secret":            `has scheme "mailto"`,
		"https:///secret":          "names no host; write https://host/path",
		"http://host/secret\x00":   "url: is not a URL (net/url: invalid control character in URL); check it",
		"http://u:secret@ho st/":   "url: is not a URL (invalid character \" \" in host name)",
		"http://host:99999/secret": `url: "http://host:99999/…" has port "99999"; use a number from 1 to 65535`,
		"http://:secret@host:x1/":  "url: is not a URL",
	} {
		err := webhook.Config{URL: bad}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", bad, err, want)
		}
	}
	err := webhook.Config{URL: "x", Timeout: -time.Second}.Validate()
	if err == nil || !strings.Contains(err.Error(), "url: ") || !strings.Contains(err.Error(), "timeout: -1s is negative") {
		t.Errorf("not everything at once: %v", err)
	}
}

func TestConfigHidesCredentials(t *testing.T) {
	cfg := webhook.Config{URL: "https://user:secret@hooks.example.org/services/secret?token=secret"}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("configured", "webhook", cfg)
	fmt.Fprintf(&log, "%s %v", cfg, cfg)
	if strings.Contains(log.String(), "secret") || strings.Count(log.String(), "https://hooks.example.org/…") != 3 {
		t.Error(log.String())
	}
}

func TestNewRefusesABadConfig(t *testing.T) {
	_, err := webhook.New(webhook.Config{URL: "ftp://h"}, "pager", "1", quiet)
	if err == nil || !strings.Contains(err.Error(), "configure webhook pager: url: ") {
		t.Errorf("error %v", err)
	}
}

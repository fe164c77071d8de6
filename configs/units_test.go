package configs

import (
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "1": 1, "512B": 512, "1kB": 1000, "1KB": 1000, "2 MB": 2e6, "3GB": 3e9, "1TB": 1e12,
		"1KiB": 1 << 10, "5MiB": 5 << 20, "10GiB": 10 << 30, "2TiB": 2 << 40, "9223372036854775807": 1<<63 - 1, "8388607TiB": 8388607 << 40,
	} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %d and error %v, want %d", text, got, err, want)
		}
		var again Size
		if err := again.UnmarshalText([]byte(want.String())); err != nil || again != want {
			t.Errorf("%d is written %q, which reads %d (%v)", want, want, again, err)
		}
	}
	for _, text := range []string{"", " ", "GiB", "-1", "1.5GiB", "1gib", "1 G iB", "1GiBB", "0x10", "9223372036854775808", "8388608TiB"} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
	if err := new(Size).UnmarshalText([]byte("-5MiB")); err == nil || err.Error() != "is negative: write a whole number and a unit such as 500MiB or 10GiB" {
		t.Errorf("a negative one: %v", err)
	}
}

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0s": 0, "5s": 5 * time.Second, "1m30s": 90 * time.Second, "500ms": 500 * time.Millisecond, "7d": 7 * day, "1d12h": day + 12*time.Hour,
		"168h": 7 * day, "1.5h": 90 * time.Minute, "10µs": 10 * time.Microsecond,
	} {
		got, err := parseDuration(text)
		if err != nil || got != want {
			t.Errorf("%q: got %v and error %v, want %v", text, got, err, want)
		}
		if again, err := parseDuration(formatDuration(want)); err != nil || again != want {
			t.Errorf("%v is written %q, which reads %v (%v)", want, formatDuration(want), again, err)
		}
	}
	for _, text := range []string{"", "0", "5", "d", "-5s", "+5s", "1d-5s", "5 s", "1h2d", "1.5d", "999999d", "106751d24h", "9999999h"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	if _, err := parseDuration("-5s"); err == nil || err.Error() != "is negative: write a duration such as 500ms, 5s, 1m, 168h or 7d" {
		t.Errorf("a negative one: %v", err)
	}
	for d, want := range map[time.Duration]string{168 * time.Hour: "168h", time.Minute: "1m", 10 * time.Minute: "10m", 90 * time.Second: "1m30s", 10 * time.Second: "10s", time.Hour + time.Second: "1h0m1s"} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

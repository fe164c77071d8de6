package connect

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseInterval(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"10s": 10 * time.Second, "1m30s": 90 * time.Second, "500ms": 500 * time.Millisecond, "1.5h": 90 * time.Minute,
		"0s": 0, "7d": 7 * day, "1d12h": 36 * time.Hour, "250us": 250 * time.Microsecond, "250µs": 250 * time.Microsecond, ".5s": 500 * time.Millisecond,
		"10 seconds": 10 * time.Second, "1 second": time.Second, "1 minute 30 seconds": 90 * time.Second, "2 weeks": 14 * day,
		"interval 1 hour": time.Hour, "INTERVAL 10 Seconds": 10 * time.Second, "  1   day  2 hours ": 26 * time.Hour,
		"1.5 seconds": 1500 * time.Millisecond, "100 milliseconds": 100 * time.Millisecond, "3 microseconds": 3 * time.Microsecond,
		"1 minute30s": 90 * time.Second, "10 s": 10 * time.Second, "0.0000000001s": 0, "106751 days": 106751 * day,
	} {
		if got, err := ParseInterval(text); err != nil || got != want {
			t.Errorf("%q: got %v and error %v, want %v", text, got, err, want)
		}
	}
}

func TestParseIntervalRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "10", "0", "s", "seconds", "-10s", "-1 second", "+1s", "10 parsecs", "1 month", "1 year", "1..5s", ".s", "1.2.3s",
		"10ss", "10mss", "10µss", "10 ds", "10 seconds,", "10 seconds and 5", "once", "interval", "interval ", "continuous 1s", "1e3s", "１s",
	} {
		if got, err := ParseInterval(text); err == nil || !strings.Contains(err.Error(), "10s") {
			t.Errorf("%q: got %v and error %v, want one that says how to write it", text, got, err)
		}
	}
	for _, text := range []string{"106752 days", "99999999999999999999s", "100000 days 100000 days", "9223372036854775808us"} {
		if got, err := ParseInterval(text); err == nil || !strings.Contains(err.Error(), "too long") {
			t.Errorf("%q: got %v and error %v, want one that says that it is too long", text, got, err)
		}
	}
}

func FuzzParseInterval(f *testing.F) {
	for _, text := range []string{"10s", "1 minute 30 seconds", "1.5h", "interval 1 day", "99999999999h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseInterval(text)
		if d < 0 || err != nil && d != 0 {
			t.Errorf("%q: got %v and error %v", text, d, err)
		}
		if want, goErr := time.ParseDuration(text); goErr == nil && want > 0 && err == nil && math.Abs(float64(want-d)) > 1000 {
			t.Errorf("%q: got %v, Go reads %v", text, d, want)
		}
	})
}

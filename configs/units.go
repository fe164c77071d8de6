package configs

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written as a whole number with or without a unit:
// 10GiB, 500MB, 1048576.
type Size int64

// sizeUnits by length of their name within a power, so that String finds the
// largest exact one first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1},
}

// sizePattern is what a size looks like, for the schema too.
const sizePattern = `^[0-9]+ ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?$`

var sizeForm = regexp.MustCompile(sizePattern)

// UnmarshalText reads a size; its errors name the value and the form wanted.
func (s *Size) UnmarshalText(text []byte) error {
	const want = "write a whole number and a unit such as 500MiB or 10GiB"
	if positive, ok := bytes.CutPrefix(text, []byte("-")); ok && sizeForm.Match(positive) {
		return fmt.Errorf("is negative: %s", want)
	}
	if !sizeForm.Match(text) {
		return fmt.Errorf("is not a size: %s", want)
	}
	digits := strings.TrimRight(string(text), " BkKMGTi")
	unit := strings.TrimSpace(string(text)[len(digits):])
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return fmt.Errorf("is too large for a size: %s", want)
	}
	factor := int64(1)
	for _, u := range sizeUnits {
		if u.name == unit {
			factor = u.bytes
		}
	}
	if n > math.MaxInt64/factor {
		return fmt.Errorf("is too large for a size: %s", want)
	}
	*s = Size(n * factor)
	return nil
}

// String writes the size in the largest unit that needs no fraction.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if n := int64(s); n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

// MarshalText writes the size as String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML writes the size as String does.
func (s Size) MarshalYAML() (any, error) { return s.String(), nil }

// durationPattern is what a duration looks like, for the schema: Go's form, and
// days before it.
const durationPattern = `^([0-9]+d)?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))*$`

var leadingDays = regexp.MustCompile(`^([0-9]{1,6})d`)

// parseDuration reads Go's durations (500ms, 1m30s, 168h) with days before them
// (7d, 1d12h). A number without a unit is refused, as is an empty text.
func parseDuration(text string) (time.Duration, error) {
	errForm := fmt.Errorf("is not a duration: write a number and a unit such as 500ms, 5s, 1m, 168h or 7d")
	days := time.Duration(0)
	rest := text
	if m := leadingDays.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil || n > 100_000 {
			return 0, errForm
		}
		days, rest = time.Duration(n)*24*time.Hour, text[len(m[0]):]
		if rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err == nil && d < 0 && rest == text {
		return 0, fmt.Errorf("is negative: write a duration such as 500ms, 5s, 1m, 168h or 7d")
	}
	if err != nil || rest == "0" || rest[0] == '+' || d < 0 || d > math.MaxInt64-days {
		return 0, errForm
	}
	return days + d, nil
}

// formatDuration is Go's form without the zeros at its end: 168h, not 168h0m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

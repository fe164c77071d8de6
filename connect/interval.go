package connect

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// intervalUnits are the units of a duration, as Go and as Spark name them.
var intervalUnits = map[string]time.Duration{
	"us": time.Microsecond, "µs": time.Microsecond, "microsecond": time.Microsecond,
	"ms": time.Millisecond, "millisecond": time.Millisecond,
	"s": time.Second, "second": time.Second,
	"m": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
	"w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour,
}

// ParseInterval reads a duration as Go or as Spark people write it: 10s, 1m30s, 7d,
// "10 seconds", "1 minute 30 seconds", "interval 1 hour". It is never negative. Months and
// years have no fixed length, and are refused.
func ParseInterval(text string) (time.Duration, error) {
	rest := strings.ToLower(strings.TrimSpace(text))
	if after, found := strings.CutPrefix(rest, "interval "); found {
		rest = strings.TrimSpace(after)
	}
	total := time.Duration(0)
	for first := true; first || rest != ""; first = false {
		part, remainder, ok := intervalPart(rest)
		switch {
		case !ok:
			return 0, fmt.Errorf("%q is no duration: write it as 10s or 1m30s, or as 10 seconds", text)
		case part > math.MaxInt64-total:
			return 0, fmt.Errorf("%q is too long for a duration: write one of less than 292 years", text)
		}
		total, rest = total+part, remainder
	}
	return total, nil
}

// intervalPart reads a number and its unit; a part that is too long is as long as possible.
func intervalPart(text string) (part time.Duration, rest string, ok bool) {
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end <= 0 {
		return 0, "", false
	}
	number, after := text[:end], strings.TrimLeft(text[end:], " ")
	end = strings.IndexFunc(after, func(r rune) bool { return r == ' ' || r == '.' || r >= '0' && r <= '9' })
	if end < 0 {
		end = len(after)
	}
	unit, known := intervalUnits[after[:end]]
	if !known {
		unit, known = longUnit(after[:end])
	}
	if !known {
		return 0, "", false
	}
	part, ok = times(number, unit)
	return part, strings.TrimLeft(after[end:], " "), ok
}

// longUnit finds the unit of a plural: seconds, but not ss.
func longUnit(name string) (time.Duration, bool) {
	singular, plural := strings.CutSuffix(name, "s")
	unit, known := intervalUnits[singular]
	return unit, known && plural && len(singular) > len("ms")
}

// times is a decimal number of units, down to the nanosecond.
func times(number string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, _ := strings.Cut(number, ".")
	if whole+fraction == "" || strings.Contains(fraction, ".") {
		return 0, false
	}
	n := time.Duration(0)
	for _, digit := range whole {
		step := time.Duration(digit - '0')
		if n > (math.MaxInt64/unit-step)/10 {
			return math.MaxInt64, true
		}
		n = n*10 + step
	}
	total, scale := n*unit, unit
	for _, digit := range fraction {
		scale /= 10
		if d := time.Duration(digit-'0') * scale; d <= math.MaxInt64-total {
			total += d
		}
	}
	return total, true
}

package connect

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

// The units of a duration, as Go and as Spark name them; Spark's may have an s behind them.
var (
	shortUnits = map[string]time.Duration{
		"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond,
		"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
	}
	longUnits = map[string]time.Duration{
		"microsecond": time.Microsecond, "millisecond": time.Millisecond, "second": time.Second,
		"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour,
	}
)

// ParseInterval reads a duration as Go or as Spark people write it: 10s, 1m30s, 7d,
// "10 seconds", "1 minute 30 seconds", "interval 1 hour". It is never negative. Months and
// years have no fixed length, and are refused.
func ParseInterval(text string) (time.Duration, error) {
	rest := strings.ToLower(strings.TrimSpace(text))
	if after, found := strings.CutPrefix(rest, "interval "); found {
		rest = strings.TrimSpace(after)
	}
	total := new(big.Rat) // in nanoseconds
	for first := true; first || rest != ""; first = false {
		part, remainder, ok := intervalPart(rest)
		if !ok {
			return 0, fmt.Errorf("%q is no duration: write it as 10s or 1m30s, or as 10 seconds", text)
		}
		total, rest = total.Add(total, part), remainder
	}
	whole := new(big.Int).Quo(total.Num(), total.Denom())
	if !whole.IsInt64() {
		return 0, fmt.Errorf("%q is too long for a duration, which has less than 292 years: write a shorter one, such as 10s", text)
	}
	return time.Duration(whole.Int64()), nil
}

// intervalPart reads a number and its unit, as nanoseconds.
func intervalPart(text string) (part *big.Rat, rest string, ok bool) {
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end <= 0 {
		return nil, "", false
	}
	number, after := text[:end], strings.TrimLeft(text[end:], " ")
	end = strings.IndexFunc(after, func(r rune) bool { return r == ' ' || r == '.' || r >= '0' && r <= '9' })
	if end < 0 {
		end = len(after)
	}
	unit, known := shortUnits[after[:end]]
	if !known {
		unit, known = longUnits[strings.TrimSuffix(after[:end], "s")]
	}
	if part, ok = new(big.Rat).SetString(number); !ok || !known {
		return nil, "", false
	}
	return part.Mul(part, new(big.Rat).SetInt64(int64(unit))), strings.TrimLeft(after[end:], " "), true
}

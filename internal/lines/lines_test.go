package lines

import (
	"testing"
	"time"
)

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 999 * time.Millisecond: "999 ms", time.Second: "1.0 s", 9940 * time.Millisecond: "9.9 s", 9960 * time.Millisecond: "10 s", 75 * time.Second: "75 s",
	} {
		if got := Took(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{{"заказы", 6, "заказы"}, {"заказы", 5, "зака…"}, {"ab cd", 4, "ab…"}, {"ab", 0, "…"}, {"", 0, ""}} {
		if got := Cut(c.text, c.width); got != c.want {
			t.Errorf("%q in %d: got %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestVisible(t *testing.T) {
	if got := Visible("é " + Paint(BoldRed, "✓✓") + Paint(Plain, "x")); got != 5 {
		t.Errorf("got %d, want 5", got)
	}
}

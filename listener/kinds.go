package listener

import (
	"fmt"
	"slices"
	"strings"
)

var (
	kinds    = []Kind{KindStarted, KindProgress, KindIdle, KindTerminated, KindGap, KindBus, KindUnknown}
	outcomes = []Outcome{OutcomeFailed, OutcomeStopped, OutcomeSessionClosed, OutcomeDriverLost, OutcomeUnknown}
)

// ParseKind reads the name of a kind; the error of one that does not exist names those
// that do.
func ParseKind(name string) (Kind, error) { return oneOf("kind", Kind(name), kinds) }

// ParseOutcome reads the name of an outcome in the same way.
func ParseOutcome(name string) (Outcome, error) { return oneOf("outcome", Outcome(name), outcomes) }

func oneOf[T ~string](what string, name T, known []T) (T, error) {
	if slices.Contains(known, name) {
		return name, nil
	}
	list := make([]string, len(known))
	for i, k := range known {
		list[i] = string(k)
	}
	return "", fmt.Errorf("%s %q is not known: use %s", what, name, strings.Join(list, ", "))
}

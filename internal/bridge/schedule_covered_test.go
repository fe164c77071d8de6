package bridge

import (
	"maps"
	"slices"
	"testing"

	"sparkbridge/connect"
)

// enough is how often, at least, everything is met in two hundred schedules.
var enough = map[string]int{
	"fault weather": 20, "fault retry-info": 20, "fault class": 20, "fault hang": 20, "fault slow": 20, "fault late": 20,
	"fault late-hang": 20, "fault cut": 20, "fault cut-hang": 20, "held": 20,

	"state waiting": 200, "state attached": 200, "state lost": 100, "state taken": 10, "state polling": 20, "state closed": 50,

	"kind gap": 15, "kind idle": 1000, "origin backfill": 1000, "origin bus": 10_000, "origin poll": 1000,
	"end bus failed": 100, "end bus stopped": 100, "end inferred failed": 20, "end inferred stopped": 20, "end inferred unknown": 5,
	"end inferred driver_lost": 20, "end inferred session_closed": 5,

	connect.ErrSessionClosed.Error(): 5, connect.ErrOperationAbandoned.Error(): 5, connect.ErrPositionLost.Error(): 2,
	connect.ErrTooLarge.Error(): 2, connect.ErrDisconnected.Error(): 2,
	"the driver has restarted": 20, "no space left": 10, "resumed=true": 50, "somebody removed our listener": 20,
}

// covered checks that the schedules were hard enough.
func covered(t *testing.T, met map[string]int) {
	for _, k := range troubles() {
		if met[k.kind] < 20 {
			t.Errorf("%s befell %d schedules", k.kind, met[k.kind])
		}
	}
	for _, what := range slices.Sorted(maps.Keys(enough)) {
		if t.Logf("%7d %s", met[what], what); met[what] < enough[what] {
			t.Errorf("%s was met %d times, want %d", what, met[what], enough[what])
		}
	}
}

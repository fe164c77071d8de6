//go:build race

package bridge

// defaultSeeds is few, since the race detector makes a schedule eight times as long.
const defaultSeeds = 15

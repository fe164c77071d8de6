//go:build !race

package bridge

// defaultSeeds is what a minute is enough for.
const defaultSeeds = 200

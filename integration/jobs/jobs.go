// Package jobs carries the PySpark scripts that tests and the demo run against a real Spark
// Connect server. Each can also be run by hand; its docstring says how.
package jobs

import "embed"

// Files holds the scripts.
//
//go:embed *.py
var Files embed.FS

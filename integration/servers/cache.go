// Package servers starts real Spark Connect, Kafka and NATS servers, each as a process of
// its own on 127.0.0.1, for tests and the demo. fetch.py beside it installs what it starts.
//
// A server that was started can be stopped, killed, paused and started again on the same
// port and the same data, and no server outlives the program that started it.
package servers

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed versions.json
var versionsJSON []byte

// versions is what Go needs of versions.json, where every version is pinned.
var versions = func() (v struct {
	Spark map[string]struct {
		PySpark string   `json:"pyspark"`
		Kafka   []string `json:"kafka"`
		Delta   []string `json:"delta"`
		Connect []string `json:"connect"`
	} `json:"spark"`
	Kafka struct {
		Version string `json:"version"`
	} `json:"kafka"`
}) {
	if err := json.Unmarshal(versionsJSON, &v); err != nil {
		panic(fmt.Sprintf("servers: read versions.json: %v", err))
	}
	return v
}()

// DefaultSpark is the Spark that is started when no version is asked for.
const DefaultSpark = "4.2"

// Cache is the folder that fetch.py fills: $XDG_CACHE_HOME/sparkbridge, or ~/.cache/sparkbridge.
func Cache() string {
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			home = os.TempDir()
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "sparkbridge")
}

// NotFetchedError says that a server is not in the cache, and how to get it there.
type NotFetchedError struct {
	Part   string // folder in the cache
	Target string // argument for fetch.py
}

func (e *NotFetchedError) Error() string {
	return fmt.Sprintf("find %s in %s: not installed: run integration/servers/fetch.py %s", e.Part, Cache(), e.Target)
}

// part is the folder of one installed part; its stamp is the proof that it is complete.
func part(name, target string) (string, error) {
	folder := filepath.Join(Cache(), name)
	if _, err := os.Stat(filepath.Join(folder, "stamp.json")); err != nil {
		return "", &NotFetchedError{Part: name, Target: target}
	}
	return folder, nil
}

// javaProgram is the Java that fetch.py chose on this machine.
func javaProgram() (string, error) {
	var chosen struct {
		Java string `json:"java"`
	}
	text, err := os.ReadFile(filepath.Join(Cache(), "java.json"))
	if err == nil {
		err = json.Unmarshal(text, &chosen)
	}
	if err == nil {
		_, err = os.Stat(chosen.Java)
	}
	if err != nil {
		return "", &NotFetchedError{Part: "a Java runtime", Target: "java"}
	}
	return chosen.Java, nil
}

// sparkParts says where one version of Spark is.
type sparkParts struct {
	version string   // 4.2.0
	home    string   // SPARK_HOME
	python  string   // the Python that has its client
	jars    []string // of the Kafka source, and of Connect before 4.0
	delta   []string // of Delta Lake, where the version has one
}

// findSpark accepts a line ("4.2") or a version ("4.2.0").
func findSpark(version string) (sparkParts, error) {
	line := version
	if line == "" {
		line = DefaultSpark
	}
	if strings.Count(line, ".") > 1 {
		line = line[:strings.LastIndex(line, ".")]
	}
	pins, known := versions.Spark[line]
	if !known || (version != "" && version != line && version != pins.PySpark) {
		return sparkParts{}, fmt.Errorf("find Spark %s: only the versions in versions.json can be started", version)
	}
	name, target := "spark-"+pins.PySpark, "spark-"+line
	folder, err := part(name, target)
	if err != nil {
		return sparkParts{}, err
	}
	homes, err := filepath.Glob(filepath.Join(folder, "lib", "python*", "site-packages", "pyspark"))
	if err != nil || len(homes) != 1 {
		return sparkParts{}, &NotFetchedError{Part: name, Target: target}
	}
	found := sparkParts{version: pins.PySpark, home: homes[0], python: filepath.Join(folder, "bin", "python")}
	for extra, packages := range map[string][]string{"-kafka": pins.Kafka, "-connect": pins.Connect, "-delta": pins.Delta} {
		if packages == nil {
			continue
		}
		folder, err := part(name+extra, target)
		if err != nil {
			return sparkParts{}, err
		}
		jars, err := filepath.Glob(filepath.Join(folder, "*.jar"))
		if err != nil {
			return sparkParts{}, fmt.Errorf("list jars in %s: %w", folder, err)
		}
		if extra == "-delta" {
			found.delta = jars
		} else {
			found.jars = append(found.jars, jars...)
		}
	}
	slices.Sort(found.jars)
	return found, nil
}

//go:build integration

package main

import (
	"context"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"sparkbridge/integration/servers"
)

// Each script works on a session of its own on a real Spark, which ends streams after two
// seconds, as a shell would.
func TestQueriesOnSpark(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	spark, err := servers.StartSpark(ctx, servers.SparkOptions{Dir: t.TempDir(), Conf: map[string]string{
		"spark.connect.execute.reattachable.senderMaxStreamDuration": "2s",
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := spark.Stop(); err != nil {
			t.Errorf("stop Spark: %v", err)
		}
	}()
	t.Run("scripts", func(t *testing.T) { // is over when all scripts are
		testscript.Run(t, testscript.Params{
			Dir: "testdata/spark",
			Setup: func(env *testscript.Env) error {
				id := uuid.NewString()
				env.Setenv("SPARK_REMOTE", spark.Session("etl", id))
				env.Setenv("SERVER", spark.Remote()+"/;user_id=etl")
				env.Setenv("SESSION", id)
				return nil
			},
			Cmds: map[string]func(*testscript.TestScript, bool, []string){
				"exits": exits, "signal": sendSignals, "tails": tails, "until": until, "json": checkJSON,
			},
		})
	})
}

// checkJSON compares a value in a document, at a path in the syntax of gjson, with a regular
// expression, and may keep it in a variable: json file path regexp [variable].
func checkJSON(ts *testscript.TestScript, _ bool, args []string) {
	document, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	if !gjson.ValidBytes(document) && args[1][:2] != ".." { // .. is a document on each line
		ts.Fatalf("no JSON: %s", document)
	}
	value := gjson.GetBytes(document, args[1])
	if !regexp.MustCompile(`^(?:`+args[2]+`)$`).MatchString(value.String()) || !value.Exists() {
		ts.Fatalf("%s is %q, want %s, in %s", args[1], value.Raw, args[2], document)
	}
	if len(args) > 3 {
		ts.Setenv(args[3], value.String())
	}
}

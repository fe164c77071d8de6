package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sparkbridge/integration/jobs"
)

// SparkOptions says which Spark Connect server to start, and how.
type SparkOptions struct {
	Version string            // "4.2", "4.0" or the exact version; DefaultSpark when empty
	Port    int               // 0 picks a free one; it stays the same over a Restart
	Dir     string            // required: work folder, with logs, the event log and checkpoints
	Conf    map[string]string // Spark settings; they win over those of this package
	Token   string            // what clients must show; empty asks for none
	Jars    []string          // more jars for the driver; the Kafka source is always there
	Delta   bool              // with Delta Lake; only DefaultSpark has it
	Log     io.Writer         // gets the server's output beside Dir/spark.log; may be nil
}

// Spark is a Spark Connect server in a JVM of its own.
type Spark struct {
	process
	parts sparkParts
	dir   string
	port  int
	token string
}

// StartSpark starts a Spark Connect server and returns when it accepts connections. ctx bounds
// the start only. The error of a server that does not come up ends with the tail of its log.
// Spark 3.5 cannot be told to listen on one address only.
func StartSpark(ctx context.Context, options SparkOptions) (*Spark, error) {
	parts, err := findSpark(options.Version)
	if err != nil {
		return nil, err
	}
	java, err := javaProgram()
	if err != nil {
		return nil, err
	}
	if options.Dir == "" {
		return nil, errors.New("start Spark: SparkOptions.Dir is empty")
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("start Spark: %w", err)
	}
	port, err := choosePort(options.Port)
	if err != nil {
		return nil, fmt.Errorf("start Spark: %w", err)
	}
	if options.Delta && parts.delta == nil {
		return nil, fmt.Errorf("start Spark %s: versions.json has no Delta Lake for it", parts.version)
	}
	spark := &Spark{parts: parts, dir: dir, port: port, token: options.Token}
	if err := spark.writeLayout(); err != nil {
		return nil, fmt.Errorf("start Spark: %w", err)
	}
	spark.command = command{
		name:   "Spark " + parts.version,
		path:   java,
		args:   spark.arguments(options),
		env:    spark.environment(),
		dir:    dir,
		output: "spark.log",
		log:    options.Log,
		ready:  func(ctx context.Context) error { return dial(ctx, port) },
	}
	if err := spark.start(ctx); err != nil {
		return nil, err
	}
	return spark, nil
}

// Port is where the server listens, on 127.0.0.1.
func (s *Spark) Port() int { return s.port }

// Token is what clients must show; empty where it asks for none.
func (s *Spark) Token() string { return s.token }

// Version is Spark's full version.
func (s *Spark) Version() string { return s.parts.version }

// Python is the Python that has this Spark's client, for scripts.
func (s *Spark) Python() string { return s.parts.python }

// Dir is the server's work folder.
func (s *Spark) Dir() string { return s.dir }

// Remote is the server's address as a connection string, without user, session and token.
func (s *Spark) Remote() string { return "sc://" + loopback(s.port) }

// Session is the connection string of one session, as Spark's own clients and the bridge take
// it, without a token.
func (s *Spark) Session(user, id string) string {
	return fmt.Sprintf("%s/;user_id=%s;session_id=%s", s.Remote(), user, id)
}

// opens are the modules' packages that Spark reaches into; its own launcher opens them too.
var opens = []string{
	"java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
	"java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.security.action",
	"sun.util.calendar", "jdk.internal.ref",
}

// arguments start the server without Spark's launcher: then the process is the server, and a
// Java without the modules that the launcher adds will do.
func (s *Spark) arguments(options SparkOptions) []string {
	args := []string{"-Xmx1g", "-Dio.netty.tryReflectionSetAccessible=true", "-Djava.net.preferIPv4Stack=true",
		"-Dlog4j2.configurationFile=" + s.in("log4j2.properties")}
	for _, name := range opens {
		args = append(args, "--add-opens=java.base/"+name+"=ALL-UNNAMED")
	}
	args = append(args, "-cp", filepath.Join(s.parts.home, "jars", "*"), "org.apache.spark.deploy.SparkSubmit",
		"--master", "local[2]", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer")
	jars := slices.Concat(s.parts.jars, options.Jars)
	if options.Delta {
		jars = append(jars, s.parts.delta...)
	}
	if len(jars) > 0 {
		args = append(args, "--jars", strings.Join(jars, ","))
	}
	conf := s.settings()
	if options.Delta {
		conf["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
		conf["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
		conf["spark.databricks.delta.snapshotPartitions"] = "2" // 50 take a second each time on a small machine
	}
	maps.Copy(conf, options.Conf)
	for _, key := range slices.Sorted(maps.Keys(conf)) {
		args = append(args, "--conf", key+"="+conf[key])
	}
	return append(args, "spark-internal")
}

func (s *Spark) settings() map[string]string {
	conf := map[string]string{
		"spark.ui.enabled":                   "false",
		"spark.driver.host":                  "127.0.0.1",
		"spark.driver.bindAddress":           "127.0.0.1",
		"spark.connect.grpc.binding.address": "127.0.0.1",
		"spark.connect.grpc.binding.port":    strconv.Itoa(s.port),
		"spark.sql.warehouse.dir":            s.in("warehouse"),
		"spark.sql.shuffle.partitions":       "2",
		"spark.eventLog.enabled":             "true",
		"spark.eventLog.dir":                 s.in("events"),
		"spark.eventLog.compress":            "false",
		"spark.eventLog.rolling.enabled":     "false",
	}
	if s.token != "" {
		conf["spark.connect.authenticate.token"] = s.token
	}
	return conf
}

// environment is this program's, without what would point Spark at another installation.
func (s *Spark) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "SPARK_") || strings.HasPrefix(entry, "PYSPARK_") || strings.HasPrefix(entry, "PYTHON")
	})
	return append(env, "SPARK_HOME="+s.parts.home, "SPARK_CONF_DIR="+s.in("conf"), "SPARK_LOCAL_IP=127.0.0.1", "SPARK_LOCAL_DIRS="+s.in("local"),
		"PYSPARK_PYTHON="+s.parts.python, "PYTHONUNBUFFERED=1")
}

func (s *Spark) writeLayout() error {
	for _, folder := range []string{"conf", "events", "local"} {
		if err := os.MkdirAll(s.in(folder), 0o755); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(s.in("jobs")); err != nil {
		return err
	}
	if err := os.CopyFS(s.in("jobs"), jobs.Files); err != nil {
		return err
	}
	return os.WriteFile(s.in("log4j2.properties"), []byte(sparkLogging), 0o644)
}

func (s *Spark) in(name string) string { return filepath.Join(s.dir, name) }

// sparkLogging leaves out what Spark says of every batch at level info.
const sparkLogging = `rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
`

func dial(ctx context.Context, port int) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", loopback(port))
	if err != nil {
		return err
	}
	return connection.Close()
}

package configs

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"sparkbridge/connect"
)

// Query is a streaming query that the bridge starts in the session of its source.
type Query struct {
	Name       string             `yaml:"name" required:"true" example:"orders" doc:"The name of the query in Spark, one of its own in the source. A query that runs under it already is left alone."`
	Views      map[string]View    `yaml:"views" doc:"The streams that the query reads, by the names that sql calls them. Nothing else in the session sees them."`
	SQL        SparkText          `yaml:"sql" example:"SELECT id, amount FROM raw WHERE amount > 0" doc:"A query in Spark's SQL over the views. Left out, the one view is written as it is."`
	Output     Output             `yaml:"output" required:"true" example:"{format: parquet, path: /data/orders, checkpoint: /data/checkpoints/orders}" doc:"Where the query writes."`
	OutputMode connect.OutputMode `yaml:"output_mode" default:"append" enum:"append,complete,update" doc:"What is written of a result that changes. append: rows that will not change any more. complete: all of it, each time. update: rows that have changed."`
	Trigger    Trigger            `yaml:"trigger" example:"10s" doc:"When a batch runs: every so often (10s, or 10 seconds), once, available_now (works off what is there, and ends), or continuous 1s (no batches; the position is noted every so often). Left out: when the last one is done and there is data."`
}

// View is a stream that a query reads: of a source format, or of what is added to a table.
type View struct {
	Format    string             `yaml:"format" example:"kafka" doc:"The source: rate, kafka, json, parquet, delta and any other that Spark's server has. Or table."`
	Table     string             `yaml:"table" example:"sales.orders" doc:"Instead of format: a table of a catalog."`
	Path      SparkText          `yaml:"path" example:"/data/in" doc:"The folder that a source of files reads."`
	Options   map[string]Setting `yaml:"options" doc:"What else the source wants to know, as Spark's documents name it."`
	Schema    string             `yaml:"schema" example:"id INT, amount DOUBLE, ts TIMESTAMP" doc:"The columns of files, as in CREATE TABLE."`
	Watermark Watermark          `yaml:"watermark" doc:"How late a row may be, which bounds what Spark remembers for windows and duplicates."`
}

// Watermark says how late a row may be; it is empty where nothing is said.
type Watermark struct {
	Column string   `yaml:"column" example:"ts" doc:"The column with the time of the row."`
	Delay  Interval `yaml:"delay" example:"10 minutes" doc:"How much older than the newest a row may be."`
}

// Output is where a query writes: a sink format, or a table.
type Output struct {
	Format      string             `yaml:"format" example:"parquet" doc:"The sink: parquet, kafka, delta, memory, console, noop and any other that Spark's server has. With table, the format in which that is made."`
	Table       string             `yaml:"table" example:"sales.large" doc:"A table of a catalog, made if it is missing."`
	Path        SparkText          `yaml:"path" example:"/data/orders" doc:"The folder that a sink of files writes."`
	Checkpoint  SparkText          `yaml:"checkpoint" example:"/data/checkpoints/orders" doc:"The folder where Spark notes how far the query is, the same at each start. Every sink needs one but memory, console and noop. Left out, it is the query's name below spark.sql.streaming.checkpointLocation of conf."`
	Options     map[string]Setting `yaml:"options" doc:"What else the sink wants to know, as Spark's documents name it."`
	PartitionBy []string           `yaml:"partition_by" example:"[day]" doc:"Columns of whose values each gets a folder."`
}

// Setting is the value of an option or a setting of Spark, which are all texts. A file may
// write a number or true and false as they are.
type Setting string

// SparkText is a text that Spark reads, such as SQL or a location. It is shown without
// the credentials that it may hold.
type SparkText string

// Interval is a duration as Go or Spark people write it: 10s, "10 minutes".
type Interval string

// UnmarshalText checks that it is one.
func (i *Interval) UnmarshalText(text []byte) error {
	if _, err := connect.ParseInterval(string(text)); err != nil {
		return errInterval
	}
	*i = Interval(text)
	return nil
}

var errInterval = errors.New("is no duration: write it as 10s or 1m30s, or as 10 seconds")

// Spark is the interval as Spark reads it.
func (i Interval) Spark() string {
	return strconv.FormatInt(i.duration().Milliseconds(), 10) + " milliseconds"
}

func (i Interval) duration() time.Duration {
	d, _ := connect.ParseInterval(string(i)) // checked where it was read
	return d
}

// Trigger says when batches run: an interval, once, available_now, continuous and an
// interval, or nothing for Spark's default.
type Trigger string

const (
	triggerOnce         = "once"
	triggerAvailableNow = "available_now"
	triggerContinuous   = "continuous"
)

// UnmarshalText checks that it is one.
func (t *Trigger) UnmarshalText(text []byte) error {
	trigger := Trigger(strings.ReplaceAll(strings.TrimSpace(string(text)), "available-now", triggerAvailableNow))
	kind, every := trigger.parts()
	d, err := connect.ParseInterval(every)
	switch {
	case trigger == triggerOnce, trigger == triggerAvailableNow:
	case err != nil:
		return errors.New("is no trigger: write a duration such as 10s or 10 seconds, once, available_now, or continuous 1s")
	case kind == triggerContinuous && d <= 0:
		return errors.New("notes the position all the time: write a longer duration, such as continuous 1s")
	}
	*t = trigger
	return nil
}

// parts are the kind, empty for an interval alone, and the interval.
func (t Trigger) parts() (kind, every string) {
	if after, ok := strings.CutPrefix(string(t), triggerContinuous+" "); ok {
		return triggerContinuous, after
	}
	return "", string(t)
}

// Spark is the trigger as the client gives it to Spark.
func (t Trigger) Spark() connect.Trigger {
	switch t {
	case "":
		return connect.Trigger{}
	case triggerOnce:
		return connect.Once()
	case triggerAvailableNow:
		return connect.AvailableNow()
	}
	kind, every := t.parts()
	if kind == triggerContinuous {
		return connect.Continuous(Interval(every).duration())
	}
	return connect.ProcessingTime(Interval(every).duration())
}

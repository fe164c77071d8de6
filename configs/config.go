// Package configs is the configuration of the bridge: one tree of structs whose
// tags carry what people need to know of a key. The strict loader, the checks,
// the JSON Schema and the printed summary are all made from that tree, so none
// of them can say something else than the others.
//
// Loading promises that all problems are told at once, each with file, line,
// column, the key's path and the next step, and that no secret is ever shown.
package configs

import (
	"log/slog"
	"time"

	"sparkbridge/sinks"
	"sparkbridge/sinks/kafka"
	"sparkbridge/sinks/nats"
	"sparkbridge/sinks/webhook"
)

// The tags beside yaml, read by the loader, the checks and the schema:
//
//	doc       what the key does, in a sentence or two
//	default   its value when it is left out, written as in the file
//	required  "true": it must not be left out or empty
//	enum      the values it can have, separated by commas
//	pattern   a regular expression that it must match
//	form      the same in words
//	min       the least duration or size that makes sense
//	example   a value for the schema to show
//	path      "true": a file or folder; a relative one starts at the folder of the configuration file

// Config is the whole configuration.
type Config struct {
	Sources []Source `yaml:"sources" required:"true" doc:"The Spark Connect sessions to listen to, one bus each."`
	Journal Journal  `yaml:"journal" doc:"Where events are kept, and for how long."`
	Sinks   []Sink   `yaml:"sinks" required:"true" doc:"Where events go. Every sink gets the events that it wants, at its own pace."`
	HTTP    HTTP     `yaml:"http" doc:"The page, the API, metrics and health."`
	Log     Log      `yaml:"log" doc:"What the bridge says about itself, on standard error."`

	// Warnings are what Load has found that may keep the bridge from working, and does
	// not keep it from starting.
	Warnings Errors `yaml:"-"`
}

// Source is one Spark Connect session.
type Source struct {
	Name          string           `yaml:"name" required:"true" pattern:"^[a-z0-9][a-z0-9-]{0,31}$" form:"1 to 32 lower-case letters, digits and -, the first no -" example:"etl" doc:"Names the job, stable over its sessions; a part of subjects and of the source of every event."`
	Remote        ConnectionString `yaml:"remote" example:"sc://spark:15002/;user_id=etl;session_id=5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e11" doc:"The Spark Connect connection string of the session. user_id and session_id are required unless create_session is true; the session id must be the one of the job."`
	RemoteFile    string           `yaml:"remote_file" path:"true" example:"/run/spark/etl" doc:"Instead of remote: a file that holds the connection string, read again when it changes or the session is closed."`
	Token         Secret           `yaml:"token" doc:"Sent as Authorization: Bearer. Give it here or in remote, not in both."`
	TLS           sinks.TLS        `yaml:"tls" doc:"How the connection to Spark, or to the proxy before it, is secured. A token turns TLS on without this too, and trusts whom this machine trusts."`
	Mode          Mode             `yaml:"mode" default:"auto" enum:"auto,bus,poll" doc:"auto: hold the listener bus, and poll the session while that cannot be had. bus: wait for the bus. poll: never take it."`
	Attach        Attach           `yaml:"attach" default:"first_query" enum:"first_query,at_once" doc:"When to take the session's listener bus: when it has a query, or at once."`
	Takeover      bool             `yaml:"takeover" default:"false" doc:"true: take the bus from another client that holds it; the listeners of that client get nothing any more."`
	CreateSession bool             `yaml:"create_session" default:"false" doc:"true: make the session if it is missing, and attach at once."`
	OnStop        OnStop           `yaml:"on_stop" default:"remove" enum:"remove,keep" doc:"remove: free the bus when the bridge stops. keep: leave it for a restart within five minutes."`
	PollInterval  time.Duration    `yaml:"poll_interval" default:"5s" min:"100ms" doc:"How often Spark is asked which queries are active."`
	Required      bool             `yaml:"required" default:"true" doc:"false: /readyz says ready also while this source is lost."`

	DetachWhenIdle time.Duration `yaml:"detach_when_idle" default:"0s" doc:"Let go of a session that has had no active query for so long, so that Spark can close it; 0s never does."`

	Labels map[string]string `yaml:"labels" doc:"What else there is to say of the source, by names of your own; for templates and metrics."`

	Conf    map[string]Setting `yaml:"conf" example:"{spark.sql.shuffle.partitions: 8}" doc:"Settings of the session, made before setup and queries. They hold for all that the job does in it from then on."`
	Setup   []SparkText        `yaml:"setup" example:"[CREATE TABLE IF NOT EXISTS t (id INT) USING delta]" doc:"SQL statements that are run in their order before queries are started. They must bear being run again: that is done at each start of the bridge that finds a query not running."`
	Queries []Query            `yaml:"queries" doc:"Streaming queries to start in the session, once its events are followed; the bridge then attaches at once. They go on when the bridge stops."`
}

// Mode says how a source follows its session.
type Mode string

// The values of Source.Mode.
const (
	ModeAuto Mode = "auto"
	ModeBus  Mode = "bus"
	ModePoll Mode = "poll"
)

// Attach says when a source takes the listener bus of its session.
type Attach string

// The values of Source.Attach.
const (
	AttachFirstQuery Attach = "first_query"
	AttachAtOnce     Attach = "at_once"
)

// OnStop says what becomes of the listener bus when the bridge stops.
type OnStop string

// The values of Source.OnStop.
const (
	OnStopRemove OnStop = "remove"
	OnStopKeep   OnStop = "keep"
)

// Journal says where the durable log lies and when it forgets.
type Journal struct {
	Dir      string        `yaml:"dir" path:"true" default:"bridge-data" required:"true" doc:"The folder of the journal, made if it is missing. One bridge at a time."`
	MaxAge   time.Duration `yaml:"max_age" default:"168h" min:"1s" doc:"How long events are kept at most."`
	MaxBytes Size          `yaml:"max_bytes" default:"10GiB" min:"1MiB" doc:"How much disk the events may take; the oldest go first. The newest segment always stays."`
	WhenFull WhenFull      `yaml:"when_full" default:"drop_oldest" enum:"drop_oldest,block" doc:"What happens when events have to go that a sink has not had yet. drop_oldest: they go, and the sink gets a gap event for each run. block: nothing is read until the sink has them; Spark keeps what comes."`
}

// WhenFull says what happens when events have to go that a sink has not had yet.
type WhenFull string

// The values of Journal.WhenFull.
const (
	WhenFullDropOldest WhenFull = "drop_oldest"
	WhenFullBlock      WhenFull = "block"
)

// Sink is one destination; exactly one of NATS, Kafka and Webhook is set.
type Sink struct {
	Name    string          `yaml:"name" required:"true" pattern:"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$" form:"1 to 64 letters, digits, _, . and -, the first a letter or digit" example:"events" doc:"Names the sink in logs, and its place in the journal: a new name starts afresh."`
	NATS    *nats.Config    `yaml:"nats" doc:"Publishes to NATS, by default to a JetStream stream."`
	Kafka   *kafka.Config   `yaml:"kafka" doc:"Produces to a Kafka topic."`
	Webhook *webhook.Config `yaml:"webhook" doc:"Posts each event to a URL."`
	Retry   Retry           `yaml:"retry" doc:"The waits between tries while the destination fails. It is never given up."`

	Match         sinks.Match   `yaml:"match" doc:"Which events the sink wants; all of what is left out."`
	ProgressEvery time.Duration `yaml:"progress_every" default:"0s" doc:"At most one progress event per query in each period of this length, the newest; 0s sends all."`
	MaxAge        time.Duration `yaml:"max_age" default:"0s" doc:"Events that have waited for longer are not worth sending; they go to the dead letters as expired. 0s: all are."`
	From          From          `yaml:"from" default:"now" enum:"now,oldest" doc:"Where a new sink starts: with what comes from now on, or with the oldest event of the journal."`
	Format        sinks.Format  `yaml:"format" enum:"binary,structured,raw" doc:"binary: attributes in headers, Spark's JSON as the content. structured: one JSON document with both. raw: Spark's JSON alone. Webhooks have structured if nothing is said, the others binary."`
	Redact        bool          `yaml:"redact" default:"true" doc:"true: credentials in exceptions and descriptions are masked, and such events marked sparkredacted. false: they are sent as Spark has them."`
	GiveUp        time.Duration `yaml:"give_up" default:"1h" doc:"How long one event may fail while others go through, until it goes to the dead letters; 0s: for ever."`
	DeadLetters   DeadLetters   `yaml:"dead_letters" doc:"Events that could not be delivered, kept in the journal's folder."`
}

// Retry bounds the waits between deliveries that fail.
type Retry struct {
	Initial time.Duration `yaml:"initial" default:"500ms" min:"1ms" doc:"The first wait; each further one is longer."`
	Max     time.Duration `yaml:"max" default:"1m" min:"1ms" doc:"The longest wait."`
}

// Log says how much the bridge logs, and in which form.
type Log struct {
	Level  LogLevel  `yaml:"level" default:"info" enum:"debug,info,warn,error" doc:"The least important level that is logged."`
	Format LogFormat `yaml:"format" default:"auto" enum:"auto,text,json" doc:"auto: text on a terminal, JSON elsewhere."`
}

// LogLevel is the least important level that is logged.
type LogLevel string

// Level is the level for slog.
func (l LogLevel) Level() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l)); err != nil {
		return slog.LevelInfo // an unchecked configuration; every checked one has a level that slog knows
	}
	return level
}

// LogFormat is the form of log lines.
type LogFormat string

// The values of Log.Format.
const (
	LogAuto LogFormat = "auto"
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

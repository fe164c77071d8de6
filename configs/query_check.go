package configs

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sparkbridge/sinks/redact"
)

const (
	// The folder below which Spark puts the checkpoints of queries that name none.
	checkpointsSetting = "spark.sql.streaming.checkpointLocation"
	checkpointOption   = "checkpointLocation"
)

// temporary are the sinks for which Spark makes up a checkpoint.
var temporary = []string{"memory", "console", "noop"}

// viewName is a name that SQL needs no quotes for.
var viewName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkQueries notes what is wrong with the queries, before any of them is started: what
// Spark would refuse one after the other, and what it would not even tell.
func (c *Config) checkQueries(p *problems) {
	checkpoints := map[string]string{}
	for i := range c.Sources {
		s, at := &c.Sources[i], index("sources", i)
		s.checkPreparation(p, at)
		names := map[string]string{}
		for k := range s.Queries {
			q, at := &s.Queries[k], index(join(at, "queries"), k)
			unique(p, names, q.Name, join(at, "name"))
			q.check(p, at)
			s.checkCheckpoint(p, checkpoints, q, at)
		}
	}
}

// checkPreparation checks what comes before the queries.
func (s *Source) checkPreparation(p *problems, at string) {
	for _, key := range []struct {
		name  string
		given bool
	}{{"conf", len(s.Conf) > 0}, {"setup", len(s.Setup) > 0}} {
		if key.given && len(s.Queries) == 0 && !p.failed(join(at, "queries")) {
			p.add(join(at, key.name), "prepares the session for queries, and there are none: add queries, or drop it")
		}
	}
	for i, statement := range s.Setup {
		if strings.TrimSpace(string(statement)) == "" {
			p.add(index(join(at, "setup"), i), "is empty: write an SQL statement, or drop it")
		}
	}
}

func (q *Query) check(p *problems, at string) {
	views := join(at, "views")
	for _, name := range slices.Sorted(maps.Keys(q.Views)) {
		view := join(views, clip(name))
		if !viewName.MatchString(name) {
			p.add(view, "has a name that SQL would need quotes for: use letters, digits and _, no digit first")
		}
		q.Views[name].check(p, view)
	}
	if q.SQL == "" && !p.failed(views) && !p.failed(join(at, "sql")) {
		switch len(q.Views) {
		case 0:
			p.add(at, "has neither views nor sql: say in views what it reads")
		case 1:
		default:
			p.add(join(at, "sql"), "is missing: with %d views it has to say what is written", len(q.Views))
		}
	}
	if output := join(at, "output"); !p.failed(output) {
		q.Output.check(p, output)
	}
}

func (v View) check(p *problems, at string) {
	table := join(at, "table")
	switch {
	case v.Format == "" && v.Table == "" && !p.failed(join(at, "format")) && !p.failed(table):
		p.add(at, "has neither format nor table: name what it reads, such as format: kafka")
	case v.Table != "":
		for _, key := range []struct {
			name  string
			given bool
		}{{"format", v.Format != ""}, {"path", v.Path != ""}, {"schema", v.Schema != ""}} {
			if key.given {
				p.add(join(at, key.name), "is what the table %s has itself: drop one of %s and table", p.quote(table, v.Table), key.name)
			}
		}
	}
	onceOnly(p, join(at, "path"), v.Path, v.Options, "path")
	v.Watermark.check(p, join(at, "watermark"))
}

func (w Watermark) check(p *problems, at string) {
	if w == (Watermark{}) {
		return
	}
	for _, key := range []struct {
		name, example string
		given         bool
	}{{"column", "ts", w.Column != ""}, {"delay", "10 minutes", w.Delay != ""}} {
		if one := join(at, key.name); !key.given && !p.failed(one) {
			p.add(one, "is missing: write for example %s: %s", key.name, key.example)
		}
	}
}

func (o *Output) check(p *problems, at string) {
	table := join(at, "table")
	switch {
	case o.Format == "" && o.Table == "" && !p.failed(join(at, "format")) && !p.failed(table):
		p.add(at, "has neither format nor table: name what it writes, such as format: parquet")
	case o.Table != "" && o.Path != "":
		p.add(join(at, "path"), "the table %s has a place of its own: drop one of path and table", p.quote(table, o.Table))
	}
	onceOnly(p, join(at, "path"), o.Path, o.Options, "path")
	onceOnly(p, join(at, "checkpoint"), o.Checkpoint, o.Options, checkpointOption)
}

// onceOnly refuses a key that is given as an option of Spark too.
func onceOnly(p *problems, at string, value SparkText, options map[string]Setting, option string) {
	if _, twice := optionOf(options, option); twice && value != "" && !p.failed(at) {
		p.add(at, "the option %s is given too: keep one of them", option)
	}
}

// optionOf finds an option, of which Spark takes any case.
func optionOf(options map[string]Setting, name string) (Setting, bool) {
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if strings.EqualFold(key, name) {
			return options[key], true
		}
	}
	return "", false
}

// checkCheckpoint demands a checkpoint where Spark needs one, and that no other query has
// the same: Spark would stop that one without a word.
func (s *Source) checkCheckpoint(p *problems, seen map[string]string, q *Query, at string) {
	key := join(join(at, "output"), "checkpoint")
	if p.failed(key) {
		return
	}
	location, how := s.checkpoint(q)
	if location == "" {
		if !slices.Contains(temporary, strings.ToLower(q.Output.Format)) || q.Output.Table != "" {
			p.add(key, "is missing: name a folder of its own, where Spark notes how far the query is; without one it could not go on after a restart")
		}
		return
	}
	folder := normalFolder(location)
	if other, taken := seen[folder]; taken {
		p.add(key, "%s%s is the checkpoint of %s too: give each its own, or Spark stops the query that was started first, without a word", p.quoteLocation(key, location), how, other)
		return
	}
	seen[folder] = at
}

// checkpoint is the folder that Spark will use, empty for none, and why if it is not
// written at the query itself.
func (s *Source) checkpoint(q *Query) (location, how string) {
	if q.Output.Checkpoint != "" {
		return string(q.Output.Checkpoint), ""
	}
	if location, ok := optionOf(q.Output.Options, checkpointOption); ok {
		return string(location), ""
	}
	if base := s.Conf[checkpointsSetting]; base != "" {
		return strings.TrimRight(string(base), "/") + "/" + q.Name, fmt.Sprintf(" (by %s and its name)", checkpointsSetting)
	}
	return "", ""
}

// quoteLocation shows a location whole, which addresses are not.
func (p *problems) quoteLocation(path, location string) string {
	if at := p.at[path]; at.expanded != "" {
		location = at.expanded
	}
	return strconv.Quote(redact.Text(location))
}

// normalFolder writes a location in one way: file:/a, file:///a/ and /a/../a are one folder.
func normalFolder(location string) string {
	scheme, rest, found := strings.Cut(location, ":")
	if !found || strings.Contains(scheme, "/") {
		return path.Clean(location)
	}
	if strings.EqualFold(scheme, "file") {
		return path.Clean("/" + strings.TrimLeft(rest, "/"))
	}
	return strings.ToLower(scheme) + ":" + path.Clean(rest)
}

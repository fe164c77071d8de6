package configs

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sparkbridge/sinks"
)

// From says where a sink starts that is new to the journal.
type From string

// The values of Sink.From.
const (
	FromNow    From = "now"
	FromOldest From = "oldest"
)

// DeadLetters bounds what a sink keeps of events that it did not deliver.
type DeadLetters struct {
	Max int `yaml:"max" default:"10000" min:"1" doc:"How many at most. Expired ones make room; with that many others the sink stops and says so."`
}

// labelName is what metrics and templates take as the name of a label.
var labelName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Labels returns the labels of all sources, for templates.
func (c *Config) Labels() sinks.Labels {
	labels := sinks.Labels{}
	for i := range c.Sources {
		labels[c.Sources[i].Name] = c.Sources[i].Labels
	}
	return labels
}

func (s *Source) checkLabels(p *problems, path string) {
	for name := range s.Labels {
		if at := join(path, "labels."+clip(name)); !labelName.MatchString(name) && !p.failed(at) {
			p.add(at, "is no name for a label: use letters, digits and _, the first no digit")
		}
	}
}

// checkRoute checks what a sink wants, and the templates that make its places.
func (c *Config) checkRoute(p *problems, s *Sink, path string) {
	at := join(path, "match")
	addEach(p, at, reflect.TypeFor[sinks.Match](), s.Match.Validate())
	for i, pattern := range s.Match.Sources {
		known := func(source Source) bool { return sinks.Glob(pattern, source.Name) }
		if at := index(join(at, "sources"), i); pattern != "" && !p.failed(at) && !slices.ContainsFunc(c.Sources, known) {
			p.add(at, "%s matches no source: use the name of one, such as %s", p.quote(at, pattern), c.someSource())
		}
	}
	for _, d := range s.destinations() {
		if templated, ok := d.config.(interface{ Templates() map[string]string }); ok {
			c.checkTemplates(p, join(path, d.key), templated.Templates())
		}
	}
}

func (c *Config) someSource() string {
	var names []string
	for i := range c.Sources {
		names = append(names, c.Sources[i].Name)
	}
	return strings.Join(names, " or ")
}

// checkTemplates checks the labels that templates ask for; all else the destination
// has checked.
func (c *Config) checkTemplates(p *problems, path string, templates map[string]string) {
	for key, text := range templates {
		template, err := sinks.ParseTemplate(text)
		if err != nil {
			continue
		}
		for _, label := range template.LabelNames() {
			if at := join(path, key); !p.failed(at) && !c.Labels().Has(label) {
				p.add(at, "%s asks for {labels.%s}, which no source has: add it to the labels of the sources, or correct it", p.quote(at, text), label)
			}
		}
	}
}

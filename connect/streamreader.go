package connect

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"sparkbridge/connect/sparkpb"
)

// StreamReader says where a stream comes from. Its methods return another reader. Formats
// and options go to Spark untouched, so every source works whose jar the server has.
type StreamReader struct {
	s       *Session
	format  string
	schema  string
	options options
}

// ReadStream begins to read a stream.
func (s *Session) ReadStream() *StreamReader { return &StreamReader{s: s} }

// Format is the source: rate, kafka, json, parquet, delta, deltaSharing, socket, …
func (r StreamReader) Format(name string) *StreamReader {
	r.format = name
	return &r
}

// Schema is the columns of files, as in CREATE TABLE: "id INT, name STRING".
func (r StreamReader) Schema(columns string) *StreamReader {
	r.schema = columns
	return &r
}

// Option sets an option of the source. The value is a string, a bool or a number.
func (r StreamReader) Option(key string, value any) *StreamReader {
	r.options = r.options.with(key, value)
	return &r
}

// Options sets options of the source.
func (r StreamReader) Options(options map[string]string) *StreamReader {
	r.options = r.options.withAll(options)
	return &r
}

// Load is the stream: of files from paths, of other sources from what the options say.
func (r StreamReader) Load(paths ...string) *DataFrame {
	source := &sparkpb.Read_DataSource{Options: r.options.values, Paths: slices.Clone(paths)}
	if r.format != "" {
		source.Format = &r.format
	}
	if r.schema != "" {
		source.Schema = &r.schema
	}
	return r.s.frame(&sparkpb.Relation{RelType: &sparkpb.Relation_Read{Read: &sparkpb.Read{
		ReadType: &sparkpb.Read_DataSource_{DataSource: source}, IsStreaming: true,
	}}}, r.options.err)
}

// Table is the stream of what is added to a table of a catalog.
func (r StreamReader) Table(name string) *DataFrame {
	err := r.options.err
	if err == nil {
		err = named("table", name)
	}
	return r.s.frame(&sparkpb.Relation{RelType: &sparkpb.Relation_Read{Read: &sparkpb.Read{
		ReadType:    &sparkpb.Read_NamedTable_{NamedTable: &sparkpb.Read_NamedTable{UnparsedIdentifier: name, Options: r.options.values}},
		IsStreaming: true,
	}}}, err)
}

// options are those of a source or a sink, as text.
type options struct {
	values map[string]string
	err    error // of the first that is no option
}

func (o options) with(key string, value any) options {
	text, err := optionText(value)
	if err == nil {
		err = named("name of an option", key)
	}
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("option %s: %w", key, err)
	}
	return o.withAll(map[string]string{key: text})
}

func (o options) withAll(more map[string]string) options {
	values := make(map[string]string, len(o.values)+len(more))
	maps.Copy(values, o.values)
	maps.Copy(values, more)
	o.values = values
	return o
}

// optionText writes a value as Spark's own clients do.
func optionText(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32), nil
	}
	return "", fmt.Errorf("a value of type %T is no option: give a string, a bool or a number, and a duration as the text that the option takes, such as 10s", value)
}

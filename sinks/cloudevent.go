package sinks

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"sparkbridge/listener"
)

// StructuredContentType is the media type of what Structured returns.
const StructuredContentType = "application/cloudevents+json; charset=utf-8"

const (
	contentJSON   = "application/json"
	contentBinary = "application/octet-stream"

	sparkTypePrefix  = "org.apache.spark.sql.streaming.query."
	bridgeTypePrefix = "dev.sparkbridge."
	truncatedName    = "sparktruncated"
	redactedName     = "sparkredacted"

	// longestText bounds the texts among the attributes: they travel in headers,
	// which destinations limit much more tightly than bodies.
	longestText = 1024
)

// Attribute is one context attribute of a CloudEvent. Its name is lower case
// ASCII without a prefix; its value is valid UTF-8, never empty, and free of the
// code points that CloudEvents 1.0 forbids in strings.
type Attribute struct {
	Name, Value string
}

// Attributes returns the CloudEvents 1.0 context attributes of e in a fixed
// order, the same for every repeat of the event. What is empty is left out.
//
// datacontenttype is not among them: every binary-mode binding has a header of
// its own for it, see ContentType. All values are strings, the batch id too,
// since an Integer of CloudEvents ends at 2^31. Names and error classes of more
// than a kilobyte are cut in the middle; the payload has them whole.
func Attributes(e *listener.Event) []Attribute {
	list := make([]Attribute, 0, 20)
	add := func(name, value string) {
		if value != "" {
			list = append(list, Attribute{name, legal(value)})
		}
	}
	add("specversion", "1.0")
	add("id", e.ID)
	add("source", sourceURI(e))
	add("type", typeName(e.Kind))
	add("subject", short(subject(e)))
	add("time", timestamp(e.Time))
	add("partitionkey", e.PartitionKey())
	add("sequence", sequence(e.Sequence))
	add("recordedtime", timestamp(e.Recorded))
	add("sparkqueryid", e.QueryID)
	add("sparkrunid", e.RunID)
	add("sparkqueryname", short(e.Name))
	if e.Kind == listener.KindProgress && e.BatchID != listener.NoBatch {
		add("sparkbatchid", strconv.FormatInt(e.BatchID, 10))
	}
	add("sparkorigin", string(e.Origin))
	add("sparkuserid", short(e.UserID))
	add("sparksessionid", e.SessionID)
	if e.Kind == listener.KindTerminated {
		add("sparkoutcome", string(e.Outcome))
		add("sparkerrorclass", short(e.ErrorClass))
	}
	if e.Truncated {
		add(truncatedName, "true")
	}
	if e.Redacted {
		add(redactedName, "true")
	}
	return list
}

// ContentType is the datacontenttype of the event's payload: application/json,
// or application/octet-stream for bytes that are not JSON in UTF-8. It is empty
// for an empty payload.
func ContentType(e *listener.Event) string {
	switch {
	case len(e.Payload) == 0:
		return ""
	case isJSON(e.Payload):
		return contentJSON
	default:
		return contentBinary
	}
}

// Structured returns e as one JSON document in the CloudEvents JSON format. The
// payload stands in it as data, byte for byte; one that is not JSON stands in it
// as data_base64.
func Structured(e *listener.Event) []byte {
	doc := make([]byte, 0, len(e.Payload)+1024)
	for i, a := range Attributes(e) {
		doc = append(doc, "{,"[min(i, 1)])
		doc = appendMember(doc, a)
	}
	switch ContentType(e) {
	case contentJSON:
		doc = append(doc, `,"datacontenttype":"`+contentJSON+`","data":`...)
		doc = append(doc, e.Payload...)
	case contentBinary:
		doc = append(doc, `,"datacontenttype":"`+contentBinary+`","data_base64":"`...)
		doc = base64.StdEncoding.AppendEncode(doc, e.Payload)
		doc = append(doc, '"')
	}
	return append(doc, '}')
}

// HeaderValue encodes an attribute's value for headers that carry only printable
// ASCII, as the HTTP and NATS bindings of CloudEvents demand: space, double
// quote, percent and all that is not printable ASCII become percent-encoded UTF-8.
func HeaderValue(value string) string {
	if strings.IndexFunc(value, mustEncode) < 0 {
		return value
	}
	var b strings.Builder
	b.Grow(len(value) + 32)
	for i := range len(value) {
		if c := value[i]; mustEncode(rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func mustEncode(r rune) bool {
	return r <= ' ' || r > '~' || r == '"' || r == '%'
}

// appendMember needs no escapes but two: legal values hold no control characters.
func appendMember(doc []byte, a Attribute) []byte {
	doc = append(doc, '"')
	doc = append(doc, a.Name...)
	doc = append(doc, '"', ':')
	if a.Name == truncatedName || a.Name == redactedName {
		return append(doc, a.Value...) // a Boolean of the JSON format
	}
	doc = append(doc, '"')
	for i := range len(a.Value) {
		if c := a.Value[i]; c == '"' || c == '\\' {
			doc = append(doc, '\\')
		}
		doc = append(doc, a.Value[i])
	}
	return append(doc, '"')
}

func typeName(k listener.Kind) string {
	if k == listener.KindGap || k == listener.KindBus {
		return bridgeTypePrefix + string(k)
	}
	return sparkTypePrefix + string(k)
}

func sourceURI(e *listener.Event) string {
	uri := "/spark/" + url.PathEscape(e.Source)
	if e.QueryID != "" {
		uri += "/" + url.PathEscape(e.QueryID)
	}
	return uri
}

func subject(e *listener.Event) string {
	if label := e.QueryLabel(); label != "" {
		return label
	}
	return e.Source
}

func sequence(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%020d", n)
}

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// short cuts the middle out of a text that is too long for a header.
func short(text string) string {
	text = legal(text) // first, as it may get longer by that
	if len(text) <= longestText {
		return text
	}
	const kept = longestText/2 - 24 // leaves room for the mark
	head := strings.ToValidUTF8(text[:kept], "")
	tail := strings.ToValidUTF8(text[len(text)-kept:], "")
	return head + cutMark(len(text)-len(head)-len(tail)) + tail
}

// legal replaces what CloudEvents 1.0 forbids in strings: control characters,
// noncharacters and what is not Unicode at all.
func legal(value string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ', r >= 0x7f && r <= 0x9f, r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe:
			return utf8.RuneError
		}
		return r
	}, value)
}

// isJSON is what json.Valid says of UTF-8, at a fraction of the cost. gjson recurses
// without a bound, so what may be nested deeply is left to encoding/json.
func isJSON(payload []byte) bool {
	const deep = 1000
	if bytes.Count(payload, []byte("[")) > deep || bytes.Count(payload, []byte("{")) > deep {
		return utf8.Valid(payload) && json.Valid(payload)
	}
	return utf8.Valid(payload) && gjson.ValidBytes(payload)
}

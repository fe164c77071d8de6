package sinks

// Format is the form in which events travel.
type Format string

// The forms. FormatBinary has the attributes of the CloudEvent in headers and Spark's
// own bytes as the content; FormatStructured is one JSON document with both;
// FormatRaw is Spark's bytes alone, with the id where the destination wants one to recognise
// repeats. Empty is the form that is usual at the destination.
const (
	FormatBinary     Format = "binary"
	FormatStructured Format = "structured"
	FormatRaw        Format = "raw"
)

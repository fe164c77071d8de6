package sinks

import "errors"

// ErrDenied is the answer of a destination that does not take the credentials:
// asking again helps nobody.
var ErrDenied = errors.New("the credentials were refused")

// Finding is one thing that a destination, asked beforehand, has told about
// whether it would take events. Nothing is sent or made to find it out.
type Finding struct {
	// About names what was asked after in a word: server, stream, topic.
	About string
	// Text says what was found, on one line, where there is no problem.
	Text string
	// Unknown says that the destination does not tell.
	Unknown bool
	// Problem is why events would not be taken, with the next step, on one line; nil
	// where they would be.
	Problem error
}

// Works is a finding without a problem.
func Works(about, text string) Finding { return Finding{About: about, Text: text} }

// Untold is a finding that shows only when events are sent.
func Untold(about, text string) Finding { return Finding{About: about, Text: text, Unknown: true} }

// Fails is a finding that keeps events from being taken.
func Fails(about string, problem error) Finding { return Finding{About: about, Problem: problem} }

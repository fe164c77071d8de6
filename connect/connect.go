// Package connect speaks Spark Connect: it shares one gRPC connection among the
// sessions on a server, asks a session what it needs to know, and holds the
// session's listener bus.
//
// The promise of a [Bus] is that no event is lost which Spark can still give: it
// reads on behind the last response after every clean end, broken connection and
// crash, and lets Spark forget a response only after the position behind it is
// stored. What it may not do is harm the job that it watches: nothing here
// releases a session, interrupts an operation, or removes a listener that was not
// registered by this bus.
//
// Every failure is one of two things. A definite answer is an error class of Spark
// or a refused token; it is returned as an [*Error]. All else (a refused
// connection, a reset, a proxy's answer, a deadline) is weather between us and the
// server: it is waited out for ever, and logged when it begins, when it changes,
// and once a minute.
package connect

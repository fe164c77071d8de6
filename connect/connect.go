// Package connect speaks Spark Connect: it shares one gRPC connection among the
// sessions on a server, describes, starts and watches streaming queries, and holds
// the listener bus of a session.
//
// # Sessions
//
// [Open] makes a session of our own, [Attach] joins one that is there. Rows are
// described by [Session.ReadStream], [Session.Table] or [Session.SQL] and written by
// [DataFrame.WriteStream]; a [StreamingQuery] is a run of a query, whoever has started
// it. What needs code inside Spark is not possible from Go: foreach, foreachBatch,
// MemoryStream. Write to Kafka, files, a table or memory instead, and read there;
// what becomes of a query is told by its listener.
//
// A session is somebody's. One that was made by Open is ours: Close ends it, which
// stops its queries. Any other is its maker's, and only what was asked for is done in
// it: nothing here creates it, releases it, interrupts what others run in it, or
// removes a listener that was not registered by this process ([Session.RemoveListener]
// is there for people who want that).
//
// # Promises
//
// What has an effect (the start of a query, a statement, a view, a stop) happens once,
// however often the connection breaks: it is an operation of its own on the server, to
// which a lost answer leads back. When a ctx ends before Spark has answered, the
// operation is interrupted, and whether it took effect is not known.
//
// The promise of a [Bus] is that no event is lost which Spark can still give: it
// reads on behind the last response after every clean end, broken connection and
// crash, and lets Spark forget a response only after the position behind it is
// stored.
//
// Every failure is one of two things. A definite answer is an error class of Spark,
// whatever Spark refuses a command for, or a refused token; it is returned as an
// [*Error]. All else (a refused
// connection, a reset, a proxy's answer, a deadline) is weather between us and the
// server: it is waited out for ever, and logged when it begins, when it changes,
// and once a minute.
package connect

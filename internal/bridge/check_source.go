package bridge

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/listener"
)

// askedAtOnce is how many queries of a session are asked beside each other.
const askedAtOnce = 8

// inquiry is the questions to one session, and what they have brought.
type inquiry struct {
	Checked
	cfg     configs.Source
	session *connect.Session
	polled  bool // the bridge would ask instead of listening
	answers bool // the server does, and takes the token
}

func checkSource(ctx context.Context, client *connect.Client, cfg configs.Source) Checked {
	q := &inquiry{Checked: Checked{Name: cfg.Name}, cfg: cfg}
	remote, known := q.remote()
	if !known {
		return q.Checked
	}
	q.Target = remote.String()
	session, err := client.Session(remote)
	if err != nil {
		q.misconfigured("remote", "%v", err)
		return q.Checked
	}
	q.session = session
	if q.meet(ctx, remote) && q.version(ctx) {
		q.bus()
		q.queries(ctx)
	}
	if q.answers {
		q.plans(ctx, client, remote)
	}
	if err := session.Close(); err != nil {
		q.fails("end", "%v", err)
	}
	return q.Checked
}

// remote is where the session is; a file that is to name it may not be there yet.
func (q *inquiry) remote() (connect.Remote, bool) {
	if q.cfg.RemoteFile != "" {
		q.Target = q.cfg.RemoteFile
		remote, _, err := q.cfg.ReadRemote()
		if err != nil {
			q.fails("remote_file", "%v; the bridge waits until the job has written its connection string there", err)
		}
		return remote, err == nil
	}
	q.Target = q.cfg.Remote.String()
	remote, err := q.cfg.ParsedRemote()
	if err != nil {
		q.misconfigured("remote", "%v", err)
	}
	return remote, err == nil
}

// meet asks whether the session is there, which tells of the server and the token
// too, and says whether more can be asked.
func (q *inquiry) meet(ctx context.Context, remote connect.Remote) (there bool) {
	began := time.Now()
	err := q.session.Probe(ctx)
	took := roughly(time.Since(began))
	if err != nil && !connect.IsDefinite(err) {
		q.fails("server", "%s has not answered in %s (%v); start it, or correct host, port and use_ssl in remote, or tls", remote.Address(), took, err)
		return false
	}
	q.works("server", "%s answers after %s", remote.Address(), took)
	if errors.Is(err, connect.ErrUnauthenticated) {
		q.misconfigured("token", "%v; set token, or SPARK_CONNECT_AUTHENTICATE_TOKEN, to the one that the server was started with", err)
		return false
	}
	if remote.Token != "" {
		q.works("token", "accepted")
	} else {
		q.works("token", "none is asked for")
	}
	q.answers = true
	q.found(err)
	return err == nil
}

// found tells what the answer to the probe means for the session.
func (q *inquiry) found(answer error) {
	const about = "session"
	switch {
	case answer == nil:
		q.works(about, "is there")
	case errors.Is(answer, connect.ErrSessionNotFound) && q.cfg.CreateSession:
		q.works(about, "is not there; the bridge makes it (create_session: true). Its Spark, bus and queries are known then")
	case errors.Is(answer, connect.ErrSessionNotFound) && madeByAsking(answer):
		q.works(about, "was not there yet; a Spark before 4.0, as this seems to be, makes it when asked for it. Check again for its bus and queries")
	case errors.Is(answer, connect.ErrSessionNotFound):
		q.works(about, "is not there yet; the bridge waits until the job makes it. Its Spark, bus and queries are known then")
	case errors.Is(answer, connect.ErrSessionClosed) && q.cfg.RemoteFile != "":
		q.fails(about, "is closed, and its id can never be used again; the bridge waits for a new one in %s", q.cfg.RemoteFile)
	case errors.Is(answer, connect.ErrSessionClosed):
		q.fails(about, "is closed, and its id can never be used again; start the job with a new session_id and set it in remote")
	case errors.Is(answer, connect.ErrBadID):
		q.misconfigured(about, "%v; set session_id in remote to the id of the job's session, a UUID", answer)
	default:
		q.fails(about, "%v; see that remote leads to a Spark Connect server", answer)
	}
}

// madeByAsking recognises a Spark before 4.0 by its errors, which have no SQL state.
// It makes the session that it does not have while it handles the error that says so
// (measured on 3.5.5): there, nothing can be asked without that.
func madeByAsking(answer error) bool {
	var e *connect.Error
	return errors.As(answer, &e) && e.SQLState == ""
}

// version asks for Spark's version, which only a session that is there may be asked:
// the question would make it.
func (q *inquiry) version(ctx context.Context) (told bool) {
	version, err := q.session.SparkVersion(ctx)
	if err != nil {
		q.fails("version", "%v", err)
		return false
	}
	q.SparkVersion = version
	q.works("version", "Spark %s", version)
	return true
}

// bus tells whether there is a listener bus. Nobody can see who holds it: Spark
// answers to the second who adds a listener by silence.
func (q *inquiry) bus() {
	const about = "bus"
	has := hasBus(q.SparkVersion)
	q.polled = q.cfg.Mode == configs.ModePoll || !has
	switch {
	case q.cfg.Mode == configs.ModePoll:
		q.works(about, "left alone (mode: poll): the session is asked every %s", roughly(q.cfg.PollInterval))
	case !has && q.cfg.Mode == configs.ModeBus:
		q.fails(about, "Spark %s has none, which came with 4.0; set mode: auto or mode: poll", q.SparkVersion)
	case !has:
		q.works(about, "Spark %s has none: the session will be polled every %s", q.SparkVersion, roughly(q.cfg.PollInterval))
	default:
		q.works(about, "the server has one; whether another client holds this session's shows only when the bridge takes it: if so, %s", q.ifTaken())
	}
}

// hasBus says whether a version of Spark has listener buses, which came with 4.0.
func hasBus(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err != nil || n >= 4
}

func (q *inquiry) ifTaken() string {
	switch {
	case q.cfg.Takeover:
		return "it is taken over (takeover: true)"
	case q.cfg.Mode == configs.ModeBus:
		return "it is waited for (mode: bus)"
	default:
		return fmt.Sprintf("the session is polled every %s", roughly(q.cfg.PollInterval))
	}
}

// queries tells of each active query how long the bridge may be away from it.
func (q *inquiry) queries(ctx context.Context) {
	active, err := q.session.Active(ctx)
	switch {
	case err != nil:
		q.fails("queries", "%v", err)
		return
	case len(active) == 0 && !q.polled && q.cfg.Attach == configs.AttachFirstQuery && !q.cfg.CreateSession && len(q.cfg.Queries) == 0:
		q.works("queries", "none is active; the bridge takes the bus when the first one is (attach: first_query)")
		return
	case len(active) == 0:
		q.works("queries", "none is active")
		return
	}
	for i, answer := range q.histories(ctx, active) {
		q.query(active[i], answer)
	}
	if !q.polled {
		q.restart()
	}
}

// history is what Spark keeps of a run, or why it did not tell.
type history struct {
	reach reach
	err   error
}

func (q *inquiry) histories(ctx context.Context, active []listener.Query) []history {
	answers := make([]history, len(active))
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	for i, query := range active {
		asking.Go(func() error {
			documents, err := q.session.RecentProgress(ctx, query)
			answers[i] = history{measure(query.RunID, documents), err}
			return nil // each query has its own line
		})
	}
	_ = asking.Wait() // no question ends the others
	return answers
}

func (q *inquiry) query(query listener.Query, answer history) {
	const about = "query"
	name := query.Name
	if name == "" {
		name = "unnamed"
	}
	r := answer.reach
	seen := CheckedQuery{ID: query.ID, RunID: query.RunID, Name: query.Name, Progress: r.documents}
	switch {
	case errors.Is(answer.err, listener.ErrNoQuery):
		q.works(about, "%s (%s): has ended meanwhile", name, query.ID)
		return
	case answer.err != nil:
		q.fails(about, "%s (%s): %v", name, query.ID, answer.err)
	case !r.known():
		q.unknown(about, "%s (%s): %s", name, query.ID, r)
	default:
		seen.Kept, seen.IntervalSeconds, seen.AwaySeconds = r.kept(), r.every.Seconds(), r.away().Seconds()
		if away := r.away(); q.polled && away <= q.cfg.PollInterval {
			q.fails(about, "%s (%s): %s, less than poll_interval: shorten that to %s", name, query.ID, r, roughly(away/2))
		} else {
			q.works(about, "%s (%s): %s", name, query.ID, r)
		}
	}
	q.Queries = append(q.Queries, seen)
}

// restart tells what the bus itself bridges: Spark keeps the operation of a client
// that has gone for spark.connect.execute.manager.detachedTimeout.
func (q *inquiry) restart() {
	after := "after a crash"
	if q.cfg.OnStop == configs.OnStopKeep {
		after = "after a crash or a stop (on_stop: keep)"
	}
	q.works("restart", "a bridge that is back within 5m %s loses nothing at all (Spark's default detachedTimeout); otherwise batches are fetched as far as they are in reach", after)
}

package bridge

import (
	"context"
	"errors"
	"time"

	"sparkbridge/connect"
)

// lookAgain is how often the file of a connection string is read.
const lookAgain = 2 * time.Second

// errMoved says that the file names another session now.
var errMoved = errors.New("remote_file names another session")

// place is where a session is: a connection string, and how it was written.
type place struct {
	remote  connect.Remote
	written string
}

// next is the session to follow. From a file it waits for one that is not the last,
// and says why it waits.
func (s *source) next(ctx context.Context, last string) (place, error) {
	if s.cfg.RemoteFile == "" {
		remote, err := s.cfg.ParsedRemote()
		if err != nil {
			return place{}, usage(err)
		}
		return place{owned(remote), s.cfg.Remote.Reveal()}, nil
	}
	for {
		remote, written, err := s.cfg.ReadRemote()
		switch {
		case err != nil:
			s.states.tell(ctx, busWaiting, "for a connection string in "+s.cfg.RemoteFile+": "+err.Error())
		case written != last:
			return place{owned(remote), written}, nil
		}
		if !waited(ctx, lookAgain) {
			return place{}, nil
		}
	}
}

// owned gives a session that is ours to make a user, if it has none.
func owned(r connect.Remote) connect.Remote {
	if r.UserID == "" {
		r.UserID = "sparkbridge"
	}
	return r
}

// watch ends the following of a session when the file names another one.
func (s *source) watch(ctx context.Context, where place, stop context.CancelCauseFunc) {
	if s.cfg.RemoteFile == "" {
		return
	}
	for pause(ctx, lookAgain) == nil {
		if _, written, err := s.cfg.ReadRemote(); err == nil && written != where.written {
			s.log.Info("remote_file names another session", "file", s.cfg.RemoteFile)
			stop(errMoved)
			return
		}
	}
}

package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"sparkbridge/sinks"
	"sparkbridge/sinks/redact"
)

// maxRequest bounds the body of a request.
const maxRequest = 1 << 20

// Desk answers requests.
type Desk struct {
	Sinks   []Sink
	Journal Journal
	// Kept tells what is kept of all sinks, also of those that are configured no more.
	Kept func() (Kept, error)
	// Rest answers what is asked for besides; nil answers nothing.
	Rest http.Handler
}

// Register adds the routes to a mux, all below /control/v1/.
func (d *Desk) Register(mux *http.ServeMux) {
	const sink = "/control/v1/sinks/{sink}/"
	mux.HandleFunc("GET /control/v1/kept", answer(func(*http.Request) (any, error) { return d.Kept() }))
	mux.HandleFunc("GET /control/v1/letters", answer(d.allLetters))
	mux.HandleFunc("GET "+sink+"letters/{sequence}", answer(d.letter))
	mux.HandleFunc("POST "+sink+"letters/retry", answer(d.retry))
	mux.HandleFunc("POST "+sink+"letters/drop", answer(d.drop))
	mux.HandleFunc("GET "+sink+"replays", answer(d.replays))
	mux.HandleFunc("POST "+sink+"replays", answer(d.ask))
	mux.HandleFunc("DELETE "+sink+"replays/{id}", answer(d.cancel))
}

// errFound ends an iteration.
var errFound = errors.New("found")

// refusal is an error that the caller has made.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// answer writes what a function returns as JSON.
func answer(fn func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
		body, err := fn(r)
		status := http.StatusOK
		if err != nil {
			status = http.StatusInternalServerError
			var mistake *refusal
			if errors.As(err, &mistake) {
				status = mistake.status
			}
			body = problem{err.Error()}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // whoever asked has gone
	}
}

func (d *Desk) sink(r *http.Request) (*Sink, error) {
	name := r.PathValue("sink")
	known := ""
	for i := range d.Sinks {
		if d.Sinks[i].Name == name {
			return &d.Sinks[i], nil
		}
		known += " " + d.Sinks[i].Name
	}
	return nil, refuse(http.StatusNotFound, "the bridge has no sink %q: use one of%s", name, known)
}

// allLetters lists the letters of one sink or of all, without the events themselves.
func (d *Desk) allLetters(r *http.Request) (any, error) {
	wanted := r.URL.Query().Get("sink")
	if wanted != "" {
		r.SetPathValue("sink", wanted)
		if _, err := d.sink(r); err != nil {
			return nil, err
		}
	}
	all := []Letter{}
	for _, s := range d.Sinks {
		if wanted != "" && s.Name != wanted {
			continue
		}
		err := s.Letters.Each(0, func(l sinks.Letter) error {
			all = append(all, letterOf(s.Name, l))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (d *Desk) letter(r *http.Request) (any, error) {
	s, err := d.sink(r)
	if err != nil {
		return nil, err
	}
	sequence, err := strconv.ParseUint(r.PathValue("sequence"), 10, 64)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%q is no sequence: bridge dlq list shows them", r.PathValue("sequence"))
	}
	var found sinks.Letter
	err = s.Letters.Each(sequence, func(l sinks.Letter) error {
		found = l
		return errFound
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	if found.Event.Sequence != sequence {
		return nil, refuse(http.StatusNotFound, "sink %s has no dead letter %d: bridge dlq list shows them", s.Name, sequence)
	}
	shown := letterOf(s.Name, found)
	e := redact.Event(found.Event) // what is shown ends up in tickets
	shown.Event = sinks.Structured(&e)
	return shown, nil
}

func (d *Desk) retry(r *http.Request) (any, error) {
	return d.selected(r, func(s *Sink, sequences []uint64) ([]uint64, error) {
		marked, err := s.Letters.Retry(sequences)
		s.Wake()
		return marked, err
	})
}

func (d *Desk) drop(r *http.Request) (any, error) {
	return d.selected(r, func(s *Sink, sequences []uint64) ([]uint64, error) {
		gone, err := s.Letters.Discard(sequences)
		s.Wake() // there may be room again
		return gone, err
	})
}

// selected works on some letters, or on all only if that is what was asked for.
func (d *Desk) selected(r *http.Request, work func(*Sink, []uint64) ([]uint64, error)) (any, error) {
	s, err := d.sink(r)
	if err != nil {
		return nil, err
	}
	var chosen selection
	if err := json.NewDecoder(r.Body).Decode(&chosen); err != nil {
		return nil, refuse(http.StatusBadRequest, "the request is no JSON: %v", err)
	}
	if chosen.All == (len(chosen.Sequences) > 0) {
		return nil, refuse(http.StatusBadRequest, "name sequences, or all of them")
	}
	done, err := work(s, chosen.Sequences)
	if err == nil && len(done) == 0 && !chosen.All {
		return nil, refuse(http.StatusNotFound, "sink %s has none of these dead letters: bridge dlq list shows them", s.Name)
	}
	if done == nil {
		done = []uint64{}
	}
	return selection{Sequences: done}, err
}

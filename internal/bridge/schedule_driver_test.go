package bridge

import (
	"fmt"
	"os"
	"time"

	"sparkbridge/configs"
)

func (s *schedule) stopDriver() {
	s.driverDown, s.driverStopped = true, time.Now()
	s.robbed()
	s.job.die()
	if err := s.spark.Stop(); err != nil {
		s.t.Fatal(err)
	}
}

// startDriver starts the driver where it does not run, and after a while the job.
func (s *schedule) startDriver() {
	if !s.driverDown {
		return
	}
	s.driverDown = false
	if err := s.spark.Restart(); err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(rand64(s.rng, 20*time.Second))
	s.connect()
}

func (s *schedule) connect() {
	if err := s.job.connect(); err != nil {
		s.t.Fatal(err)
	}
}

// closeSession ends the job's session for ever.
func (s *schedule) closeSession() {
	s.robbed()
	s.job.close()
}

// reopenSession makes another session, and lets the bridge know of it.
func (s *schedule) reopenSession() {
	if !s.driverDown {
		s.connect()
	}
	if last := s.named; last != s.job.sessionID {
		s.moved[last] = time.Now()
	}
	s.nameSession()
	if s.world.source.RemoteFile == "" {
		s.down()
		s.up()
	}
}

// nameSession tells where the job's session is.
func (s *schedule) nameSession() {
	s.named = s.job.sessionID
	remote := fmt.Sprintf("sc://%s/;user_id=u;session_id=%s%s", s.spark.Addr(), s.job.sessionID, s.world.limit)
	if s.world.source.RemoteFile == "" {
		s.world.source.Remote = configs.ConnectionString(remote)
	} else if err := os.WriteFile(s.world.source.RemoteFile, []byte(remote), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// hold lets another client take the bus: of whoever has it, or only if it is free.
func (s *schedule) hold(rob bool) {
	session := s.job.now()
	if session == nil || !s.held.IsZero() {
		return
	}
	if rob {
		session.RemoveBus()
	}
	if session.HoldBus() {
		s.held = time.Now()
		s.hit["held"]++
	}
}

// letGo lets the other client go.
func (s *schedule) letGo() {
	session := s.job.now()
	if session == nil || s.held.IsZero() {
		return
	}
	s.robbed()
	if op, taken := session.Holder(); taken && op == "" {
		session.RemoveBus()
	}
}

// robbed notes that the other client has no bus any more.
func (s *schedule) robbed() {
	if !s.held.IsZero() {
		s.foreign = append(s.foreign, span{s.held, time.Now()})
		s.held = time.Time{}
	}
}

// removeBus is a REMOVE by another client, which takes nothing for itself.
func (s *schedule) removeBus() {
	if session := s.job.now(); session != nil && s.held.IsZero() {
		session.RemoveBus()
	}
}

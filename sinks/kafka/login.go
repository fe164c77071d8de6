package kafka

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"sparkbridge/sinks"
)

// SASL is a user and how it proves who it is. The zero value is nobody.
type SASL struct {
	Mechanism string       `yaml:"mechanism" pattern:"^(plain|scram-sha-256|scram-sha-512)$" form:"plain, scram-sha-256 or scram-sha-512" example:"scram-sha-512" doc:"How the user proves who it is."`
	Username  string       `yaml:"username" example:"bridge" doc:"The user."`
	Password  sinks.Secret `yaml:"password" doc:"The password of username."`
	// WithoutTLS allows what Validate refuses otherwise.
	WithoutTLS bool `yaml:"without_tls" default:"false" doc:"true: log in without TLS on brokers elsewhere than on this machine too, where others may listen."`
}

// validateLogin checks SASL, and that nobody can listen to it.
func (c Config) validateLogin() error {
	s := c.SASL
	if s == (SASL{}) {
		return nil
	}
	var problems []error
	if s.Mechanism == "" {
		problems = append(problems, errors.New("sasl.mechanism: is missing; write plain, scram-sha-256 or scram-sha-512"))
	} else if _, err := s.mechanism(); err != nil {
		problems = append(problems, err)
	}
	if s.Username == "" {
		problems = append(problems, errors.New("sasl.username: is missing; set it to the user"))
	}
	if s.Password == "" {
		problems = append(problems, errors.New("sasl.password: is missing; set it to the password of the user"))
	}
	if !c.TLS.Wanted() && !s.WithoutTLS {
		for _, broker := range c.Brokers {
			if !loopback(broker) {
				problems = append(problems, fmt.Errorf("sasl: would log in on %s without TLS, where others may listen; set tls (at least enabled: true), or sasl.without_tls: true", broker))
				break
			}
		}
	}
	return errors.Join(problems...)
}

func loopback(broker string) bool {
	host, _, err := net.SplitHostPort(broker)
	return err == nil && (strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback())
}

// mechanism returns what the client library logs in with, nil if nobody is to.
func (s SASL) mechanism() (sasl.Mechanism, error) {
	var algorithm scram.Algorithm
	switch s.Mechanism {
	case "":
		return nil, nil
	case "plain":
		return plain.Mechanism{Username: s.Username, Password: s.Password.Reveal()}, nil
	case "scram-sha-256":
		algorithm = scram.SHA256
	case "scram-sha-512":
		algorithm = scram.SHA512
	default:
		return nil, fmt.Errorf("sasl.mechanism: %q is not known; use plain, scram-sha-256 or scram-sha-512", s.Mechanism)
	}
	mechanism, err := scram.Mechanism(algorithm, s.Username, s.Password.Reveal())
	if err != nil { // the library's own error shows the text
		return nil, errors.New("sasl.password: it, or sasl.username, holds characters that SCRAM does not allow, such as control characters")
	}
	return mechanism, nil
}

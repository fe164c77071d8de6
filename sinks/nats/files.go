package nats

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"sparkbridge/sinks"
)

// CheckFiles reads the files and returns all that keeps them from being used, each as
// a *sinks.FileError.
func (c Config) CheckFiles() error {
	problems := []error{c.TLS.CheckFiles()}
	if c.NKeyFile != "" {
		_, err := c.readNKey()
		problems = append(problems, err)
	}
	if c.CredsFile != "" {
		user, err := c.readCreds()
		if err == nil {
			err = user.outdated(c.CredsFile)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// nkey is a user who is known by its public key.
type nkey struct {
	public string
	sign   func(nonce []byte) ([]byte, error)
}

func (c Config) readNKey() (nkey, error) {
	text, err := sinks.ReadFile(c.NKeyFile)
	if err != nil {
		return nkey{}, &sinks.FileError{Key: "nkey_file", Path: c.NKeyFile, Err: err}
	}
	pair, public, err := userKey(text)
	if err != nil {
		err = fmt.Errorf("%w; it must be a file with the seed of a user, which begins with SU", err)
		return nkey{}, &sinks.FileError{Key: "nkey_file", Path: c.NKeyFile, Err: err}
	}
	return nkey{public, pair.Sign}, nil
}

// credentials are a user whom a JWT vouches for.
type credentials struct {
	jwt     string
	seed    []byte
	expires int64 // seconds since 1970; 0: never
}

func (c Config) readCreds() (credentials, error) {
	text, err := sinks.ReadFile(c.CredsFile)
	if err != nil {
		return credentials{}, &sinks.FileError{Key: "creds_file", Path: c.CredsFile, Err: err}
	}
	found, err := parseCreds(text)
	if err != nil {
		err = fmt.Errorf("%w; it must be a file of a user as nsc generate creds writes it", err)
		return credentials{}, &sinks.FileError{Key: "creds_file", Path: c.CredsFile, Err: err}
	}
	return found, nil
}

// parseCreds takes apart what nsc writes. The server checks the JWT's signature.
func parseCreds(text []byte) (found credentials, err error) {
	if found.jwt, err = nkeys.ParseDecoratedJWT(text); err != nil {
		return found, err
	}
	parts := strings.Split(found.jwt, ".")
	if len(parts) != 3 {
		return found, errors.New("has no JWT in it")
	}
	var claims struct {
		Subject string `json:"sub"`
		Expires int64  `json:"exp"`
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(body, &claims) != nil {
		return found, errors.New("has a JWT that cannot be read")
	}
	pair, public, err := userKey(text)
	switch {
	case err != nil:
		return found, err
	case public != claims.Subject:
		return found, errors.New("has the seed of another user than its JWT")
	}
	found.expires = claims.Expires
	found.seed, err = pair.Seed()
	return found, err
}

func (c credentials) outdated(path string) error {
	if c.expires == 0 || time.Now().Unix() < c.expires {
		return nil
	}
	err := fmt.Errorf("%w: the JWT ended on %s; renew it", sinks.ErrOutdated, time.Unix(c.expires, 0).UTC().Format(time.RFC3339))
	return &sinks.FileError{Key: "creds_file", Path: path, Err: err}
}

// userKey returns the first key of a text, which must be a user's. Its errors show
// nothing of it.
func userKey(text []byte) (pair nkeys.KeyPair, public string, err error) {
	if pair, err = nkeys.ParseDecoratedUserNKey(text); err != nil {
		return nil, "", errors.New("has no seed of a user in it")
	}
	public, err = pair.PublicKey()
	return pair, public, err
}

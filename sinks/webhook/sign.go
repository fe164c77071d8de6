package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"sparkbridge/sinks"
)

// The form of a secret, as Standard Webhooks (www.standardwebhooks.com) wants it.
const (
	secretPrefix      = "whsec_"
	shortestKey       = 24 // bytes
	longestKey        = 64
	secretForm        = "write whsec_ and the base64 of 24 to 64 random bytes, such as the output of: echo whsec_$(openssl rand -base64 32)"
	asymmetricSecrets = "whsk_"
)

// key reads a secret. Its errors do not show it.
func key(secret sinks.Secret) ([]byte, error) {
	text := secret.Reveal()
	if strings.HasPrefix(text, asymmetricSecrets) {
		return nil, errors.New("is a key for asymmetric signatures, which are not made; " + secretForm)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	switch {
	case err != nil:
		return nil, errors.New("is not base64; " + secretForm)
	case len(key) < shortestKey || len(key) > longestKey:
		return nil, fmt.Errorf("has %d bytes; %s", len(key), secretForm)
	}
	return key, nil
}

// keys returns the keys to sign with, none if requests are not signed.
func (c Config) keys() (keys [][]byte, err error) {
	if c.Secret != "" && len(c.Secrets) > 0 {
		return nil, errors.New("secrets: secret is set too; put all of them into secrets")
	}
	if c.Secret != "" {
		one, err := key(c.Secret)
		if err != nil {
			return nil, fmt.Errorf("secret: %w", err)
		}
		return [][]byte{one}, nil
	}
	for i, secret := range c.Secrets {
		if secret == "" { // such as ${OLD:-} between two changes
			continue
		}
		one, err := key(secret)
		if err != nil {
			return nil, fmt.Errorf("secrets[%d]: %w", i, err)
		}
		keys = append(keys, one)
	}
	if len(c.Secrets) > 0 && len(keys) == 0 {
		return nil, errors.New("secrets: all of them are empty, so that nothing would be signed; " + secretForm)
	}
	return keys, nil
}

// signature is the value of the header webhook-signature: a signature by each
// key, so that a receiver can change from one to the next.
func signature(keys [][]byte, id, timestamp string, body []byte) string {
	signatures := make([]string, 0, len(keys))
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signatures, " ")
}

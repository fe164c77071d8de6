package main

import (
	"fmt"
	"os"
)

// source names the job in the bridge's configuration, and so in subjects.
const source = "demo"

// configuration is the file that the bridge runs with. at_once, since the session has no query
// yet and the demo wants their first batches too.
const configuration = `sources:
  - name: %s
    remote: %s
    attach: at_once
    poll_interval: 1s
journal: {dir: %q}
sinks:
  - name: %s
    nats: {url: %s}
  - name: %s
    webhook: {url: %s}
log: {format: text}
`

func writeConfiguration(path, journal, remote, broker, webhook string) error {
	text := fmt.Sprintf(configuration, source, remote, journal, natsSink, broker, webhookSink, webhook)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write configuration of the bridge: %w", err)
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sparkbridge/configs"
)

// defaultFile is read where no other is named.
const defaultFile = "bridge.yaml"

// configuration is the flags that say where the configuration comes from.
type configuration struct {
	file    string
	instead configs.Flags // of a file
	given   func(flag string) bool
}

// insteadFlags are the flags that make a configuration without a file.
var insteadFlags = []string{"remote", "nats", "kafka", "webhook", "journal"}

func (c *configuration) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&c.file, "config", "c", "", "configuration `file` (default ./"+defaultFile+" if it is there)")
	flags.StringVar(&c.instead.Remote, "remote", "", "without a file: Spark Connect connection string (default $SPARK_REMOTE)")
	flags.StringArrayVar(&c.instead.NATS, "nats", nil, "without a file: `URL` of a NATS server to publish to; repeatable")
	flags.StringArrayVar(&c.instead.Kafka, "kafka", nil, "without a file: `broker[,broker][/topic]` to produce to; repeatable")
	flags.StringArrayVar(&c.instead.Webhook, "webhook", nil, "without a file: `URL` to post events to; repeatable")
	flags.StringVar(&c.instead.Journal, "journal", "", "without a file: `folder` of the journal (default ./bridge-data)")
	c.given = flags.Changed
}

// load reads the file that is named, or makes a configuration of the flags, or
// reads the default file.
func (c *configuration) load() (*configs.Config, error) {
	instead := ""
	for _, name := range insteadFlags {
		if c.given(name) {
			instead = "--" + name
			break
		}
	}
	switch {
	case c.given("config") && instead != "":
		return nil, fmt.Errorf("-c and %s exclude each other: write it into %s, or leave -c out", instead, c.file)
	case c.given("config"):
		return configs.Load(c.file)
	case instead != "":
		return configs.FromFlags(c.instead, configs.OSEnvironment())
	}
	if _, err := os.Stat(defaultFile); errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("no configuration: there is no " + defaultFile + " here; name a file with -c, or use --remote with --nats, --kafka or --webhook")
	}
	return configs.Load(defaultFile)
}

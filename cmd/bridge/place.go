package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sparkbridge/configs"
)

// place is the flags that say which bridge, or which journal, is meant.
type place struct {
	file, dir string
}

func (p *place) flags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVarP(&p.file, "config", "c", "", "configuration `file` of the bridge (default ./"+defaultFile+")")
	flags.StringVar(&p.dir, "journal", "", "`folder` of its journal, instead of a configuration")
}

// folder is the journal's folder.
func (p *place) folder() (string, error) {
	if p.dir != "" && p.file != "" {
		return "", usageError{errors.New("--config and --journal exclude each other: give one of them only")}
	}
	if p.dir != "" {
		return p.dir, nil
	}
	cfg, err := configs.Look(cmp.Or(p.file, defaultFile))
	if err != nil {
		return "", err
	}
	return cfg.Journal.Dir, nil
}

// outputFlag adds the flag for the form of what is printed.
func outputFlag(cmd *cobra.Command, output *string) {
	cmd.PersistentFlags().StringVarP(output, "output", "o", "text", "`form` of what is printed: text or json")
}

func checkOutput(output string) error {
	if output != "text" && output != "json" {
		return fmt.Errorf("--output %q is not known: use text or json", output)
	}
	return nil
}

// printJSON prints a value for programs.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

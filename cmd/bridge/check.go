package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"sparkbridge/configs"
)

func checkCommand() *cobra.Command {
	var input configuration
	var output string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and print what it amounts to",
		Long: "Checks the configuration, with all problems told at once, and prints it as it takes effect: defaults\n" +
			"filled in, variables expanded, secrets hidden. It exits 2 if the configuration is wrong. It asks no server.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "yaml" && output != "json" {
				return fmt.Errorf("--output %q is not known: use yaml or json", output)
			}
			cfg, err := input.load()
			if err != nil {
				return err
			}
			return classified(show(cmd.OutOrStdout(), output, cfg))
		},
	}
	input.flags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "`form` of what is printed: yaml or json")
	return cmd
}

func show(w io.Writer, output string, cfg *configs.Config) error {
	if output == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(cfg)
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(cfg); err != nil {
		return err
	}
	return encoder.Close()
}

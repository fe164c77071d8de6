package main

import (
	"github.com/spf13/cobra"

	"sparkbridge/configs"
)

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration",
		Long:  "Prints the JSON Schema (draft 2020-12) of the configuration file, for editors that complete and check it.",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(configs.Schema())
			return classified(err)
		},
	}
}

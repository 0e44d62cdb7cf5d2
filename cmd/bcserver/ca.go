package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/server"
)

func (p *program) caCommand() *cobra.Command {
	group := &cobra.Command{Use: "ca", Short: "Work with the CA of nodes and servers at the database itself", RunE: unknownCommand}
	group.AddCommand(p.caShowCommand(), p.caRotateCommand())
	return group
}

func (p *program) caShowCommand() *cobra.Command {
	var config server.Config
	var output string
	cmd := &cobra.Command{
		Use: "show", Short: "Show what the CA is made of, and by what machines may pin it", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write, known := map[string]func(io.Writer, []ca.Description, []string) error{"table": writeTable, "json": writeJSON}[output]
			if !known {
				return usageError{fmt.Errorf("--output %q is neither table nor json", output)}
			}
			config, err := p.completed(config, quietLog(p.stderr))
			if err != nil {
				return err
			}
			list, roots, err := server.DescribeCA(cmd.Context(), config)
			if err != nil {
				return err
			}
			return write(p.stdout, list, roots)
		},
	}
	dataFlags(cmd.Flags(), &config)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func (p *program) caRotateCommand() *cobra.Command {
	var config server.Config
	cmd := &cobra.Command{
		Use: "rotate", Short: "Make new issuers under the same root", Args: noArgs,
		Long: "Make new issuers under the same root. Running servers use them within a minute. What the former ones have signed stays valid to its end.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := p.completed(config, quietLog(p.stderr))
			if err != nil {
				return err
			}
			list, err := server.RotateCA(cmd.Context(), config)
			if err != nil {
				return err
			}
			fmt.Fprintln(p.stdout, "there are new issuers; running servers use them within a minute")
			for _, d := range list {
				if d.Issues && d.Name != ca.Root {
					fmt.Fprintln(p.stdout, d.Name, d.ID)
				}
			}
			return nil
		},
	}
	dataFlags(cmd.Flags(), &config)
	return cmd
}

func writeTable(w io.Writer, list []ca.Description, roots []string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tISSUES\tNOT BEFORE\tNOT AFTER\tID\tSERIAL\tSHA-256")
	for _, d := range list {
		issues := "no"
		if d.Issues {
			issues = "yes"
		}
		fmt.Fprintln(table, strings.Join([]string{
			d.Name, issues, d.NotBefore.UTC().Format(time.RFC3339), d.NotAfter.UTC().Format(time.RFC3339), d.ID, d.Serial, d.SHA256,
		}, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nA machine that does not know this CA yet joins with\n  bcd join --ca-sha256 %s\n", roots[0])
	return err
}

func writeJSON(w io.Writer, list []ca.Description, roots []string) error {
	type certificate struct {
		Name      string    `json:"name"`
		ID        string    `json:"id"`
		Serial    string    `json:"serial"`
		NotBefore time.Time `json:"notBefore"`
		NotAfter  time.Time `json:"notAfter"`
		SHA256    string    `json:"sha256"`
		Issues    bool      `json:"issues"`
	}
	out := struct {
		Certificates []certificate `json:"certificates"`
		RootSHA256   []string      `json:"rootSha256"`
	}{RootSHA256: roots}
	for _, d := range list {
		out.Certificates = append(out.Certificates, certificate{d.Name, d.ID, d.Serial, d.NotBefore, d.NotAfter, d.SHA256, d.Issues})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

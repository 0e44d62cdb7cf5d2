package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bettercompute/bettercompute/impl/daemon"
)

func statusCommand(stdout io.Writer) *cobra.Command {
	var state, output string
	cmd := &cobra.Command{
		Use: "status", Short: "Say how this machine stands", Args: noArgs,
		Long: "Say how this machine stands.\n\nIt ends with 0 when the machine has joined, its certificate is valid and the server has not refused it since, with 1 otherwise.",
		RunE: func(*cobra.Command, []string) error {
			if output != "text" && output != "json" {
				return usageError{fmt.Errorf("--output %q is neither text nor json", output)}
			}
			s, err := daemon.ReadStatus(state, time.Now())
			if err != nil {
				return err
			}
			if output == "json" {
				e := json.NewEncoder(stdout)
				e.SetIndent("", "  ")
				err = e.Encode(s)
			} else {
				err = print(stdout, s)
			}
			if err == nil && !s.Valid {
				return exit(exitFailed)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&state, "state", defaultState, "folder with the key and the certificate")
	cmd.Flags().StringVar(&output, "output", "text", "text or json")
	return cmd
}

// print writes one line for each thing that is known.
func print(to io.Writer, s daemon.Status) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, strings.ReplaceAll(plain(value), "\n", "; "))
		}
	}
	line("state", standing(s))
	line("server", s.Server)
	if s.Joined {
		line("node", s.NodeID)
		line("pool", s.TenantID+"/"+s.PoolID)
		line("profile", s.Profile)
		line("trust", s.Trust)
		line("certificate", fmt.Sprintf("from %s until %s, serial %s", stamp(s.NotBefore), stamp(s.NotAfter), s.Serial))
		line("renewal", "after "+stamp(s.RenewAfter))
		line("last report", stamp(s.LastReportAt))
	}
	if p := s.Pending; p != nil {
		line("request", fmt.Sprintf("%s (reason %s)", p.RequestID, p.Reason))
		line("csrSha256", p.CSRSHA256)
	}
	if s.Server != "" {
		line("clock", clock(s.ClockOffsetSeconds))
	}
	line("problem", s.Problem)
	line("next", s.Next)
	return w.Flush()
}

func standing(s daemon.Status) string {
	switch {
	case s.Joined && s.Refused != "": // banned or ended
		if s.Pending != nil {
			return s.Refused + "; the join anew is pending"
		}
		return s.Refused
	case s.Refused != "":
		return "not joined: refused (" + s.Refused + ")"
	case s.Joined && !s.Valid:
		return "certificate ended"
	case s.Joined && !s.Confirmed:
		return "joined, not confirmed"
	case s.Joined:
		return "joined"
	case s.Pending != nil:
		return "pending"
	default:
		return "not joined"
	}
}

func clock(seconds float64) string {
	offset := time.Duration(seconds * float64(time.Second)).Round(10 * time.Millisecond)
	if offset < 0 {
		return fmt.Sprintf("%v ahead of the server's", -offset)
	}
	return fmt.Sprintf("%v behind the server's", offset)
}

func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Command bench measures what Better Compute promised about speed and memory,
// against peers, and prints one table with a line for each goal.
//
// Every comparison is made within one run: ours and the peer take turns, several
// rounds each, and the ratio is the median of the rounds' ratios, so that noise on
// the machine hits both alike. A goal that is missed is "short" in the table and does not fail
// the run; something that does not work at all does.
//
//	BC_PG_FSYNC=on ../.ci/with-postgres go run .     every goal
//	go run . --only 'decode|request'                 some of them
//	go test -bench . -cpuprofile cpu.out             the small ones, for a profile
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// goals are measured in this order.
var goals = []goal{
	{"decode", decodeGoal},
	{"refused", refusedGoal},
	{"request", requestGoal},
	{"specc", speccGoal},
	{"memory", memoryGoal},
	{"list-sqlite", listSQLiteGoal},
	{"list-postgres", listPostgresGoal},
	{"create-postgres", createGoal},
	{"join", joinGoal},
	{"nodes-sqlite", nodesSQLiteGoal},
	{"nodes-postgres", nodesPostgresGoal},
	{"timing-sqlite", timingSQLiteGoal},
	{"timing-postgres", timingPostgresGoal},
}

func goalNames() string {
	var names []string
	for _, g := range goals {
		names = append(names, g.name)
	}
	return strings.Join(names, ", ")
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0 measured, 1 something is broken, 2 usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "measure only the goals whose names match: "+goalNames())
	file := flags.String("out", "results.json", "file for the results")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	chosen, err := regexp.Compile(*only)
	if err != nil || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "bench: usage: bench [--only REGEX] [--out FILE]", flags.Args(), err)
		return 2
	}
	testing.Init() // testing.Benchmark takes its time from a flag
	if err := flag.Set("test.benchtime", microTime); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	lab, err := newLab(ctx, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	defer lab.close()
	if err := lab.sealKey(); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}

	results := report{Machine: thisMachine(), Date: time.Now().UTC().Truncate(time.Second)}
	results.Machine.Versions[stepCAModule] = stepCAVersion // which no go.mod knows
	broken := false
	for _, g := range goals {
		if !chosen.MatchString(g.name) || ctx.Err() != nil {
			continue
		}
		lab.say("%s …", g.name)
		began := time.Now()
		lines, err := g.measure(ctx, lab)
		for i := range lines {
			lines[i].Name = g.name + ": " + lines[i].Name
		}
		if err != nil {
			broken = true
			lines = append(lines, line{Name: g.name, Result: brokenResult, Note: err.Error()})
		}
		results.Lines = append(results.Lines, lines...)
		lab.say("%s took %s", g.name, time.Since(began).Round(time.Second))
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "bench: stopped")
		return 1
	}
	results.print(stdout)
	if err := results.write(*file); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	if broken {
		return 1
	}
	return 0
}

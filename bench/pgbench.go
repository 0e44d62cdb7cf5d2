package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// What pgbench puts for its own variables stands where the id of a call's
// records stood. Ids of tokens are spread over the whole index, as hashes are;
// ids of events and decisions grow with time.
const (
	scriptVariables = `\set bca random(100000000000000000, 899999999999999999)
\set bcb random(10000000000000000, 89999999999999999)
\set bcc random(10000000000000000, 89999999999999999)
\set bcn :bcn + 1
\set bcw :client_id + 10
`
	tokenTemplate = "jt_:bca:bcb:bcc"  // 52 digits
	grownTemplate = "00000000:bcn:bcw" // 26 digits
)

var grownID = regexp.MustCompile(`'(evt|dec)_[0-9a-z]{26}'`)

// templates puts pgbench's variables into the statements of a call.
func templates(statements []string, requestID, token string) []string {
	var out []string
	for _, s := range statements {
		s = strings.ReplaceAll(s, token, tokenTemplate)
		s = strings.ReplaceAll(s, requestID, "req_"+grownTemplate)
		out = append(out, grownID.ReplaceAllString(s, "'${1}_"+grownTemplate+"'"))
	}
	return out
}

// A pgbench runs one script of statements.
type pgbench struct {
	program, script string
	url             string
	rounds          int
}

func newPgbench(l *lab, url string, statements []string) (*pgbench, error) {
	program, err := pgbenchPath()
	if err != nil {
		return nil, err
	}
	dir, err := l.folder("pgbench")
	if err != nil {
		return nil, err
	}
	b := &pgbench{program: program, script: filepath.Join(dir, "create.sql"), url: url}
	text := scriptVariables + strings.Join(statements, ";\n") + ";\n"
	return b, os.WriteFile(b.script, []byte(text), 0o644)
}

var (
	transactions          = regexp.MustCompile(`(?m)^number of transactions actually processed: ([0-9]+)`)
	transactionsPerSecond = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)
)

// run returns how many times a second the script was executed. It makes sure that
// every execution wrote its rows: an id given twice would only look fast.
func (b *pgbench) run(ctx context.Context, d *database, connections, forSeconds int) (float64, error) {
	b.rounds++
	before, err := d.rows(ctx)
	if err != nil {
		return 0, err
	}
	command := exec.CommandContext(ctx, b.program, "-n", "-M", "simple",
		"-c", strconv.Itoa(connections), "-j", "2", "-T", strconv.Itoa(forSeconds),
		"-D", fmt.Sprintf("bcn=%d", b.rounds*1_000_000_000_000_000), // 16 digits
		"-f", b.script, b.url)
	text, err := command.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", err, text)
	}
	done, tps := transactions.FindSubmatch(text), transactionsPerSecond.FindSubmatch(text)
	if done == nil || tps == nil {
		return 0, fmt.Errorf("pgbench does not say how it did: %w\n%s", errUnexpected, text)
	}
	after, err := d.rows(ctx)
	if err != nil {
		return 0, err
	}
	for table, n := range after {
		if wrote := strconv.Itoa(n - before[table]); wrote != string(done[1]) {
			return 0, fmt.Errorf("pgbench made %s transactions and %s rows of %s: %w", done[1], wrote, table, errUnexpected)
		}
	}
	return strconv.ParseFloat(string(tps[1]), 64)
}

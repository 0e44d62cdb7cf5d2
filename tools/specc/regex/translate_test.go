package regex_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

func TestTranslations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, goText, javaScript, html, python string }{
		{
			pagePatterns[3],
			pagePatterns[3],
			pagePatterns[3],
			`[A-Za-z0-9._:\/+\-]{1,128}`,
			`\A[A-Za-z0-9._:/+-]{1,128}\Z`,
		},
		{
			`^(a|b){0,1}\-\/{1,}$`,
			`^(?:a|b)?-/+$`,
			`^(?:a|b)?-\/+$`,
			`(?:a|b)?-\/+`,
			`\A(?:a|b)?-/+\Z`,
		},
		{
			`^(a|b)$`,
			`^(?:a|b)$`,
			`^(?:a|b)$`,
			`(?:a|b)`,
			`\A(?:a|b)\Z`,
		},
		{
			`^[-&&^(.]\.[.]$`,
			`^[\-&&\^(.]\.\.$`,
			`^[\-&&\^(.]\.\.$`,
			`[\-&\&\^\(.]\.\.`,
			`\A[\-&\&\^(.]\.\.\Z`,
		},
		{
			`^[a-z]{1,4096}$`,
			`^[a-z](?:[a-z]{1000}(?:[a-z]{1000}(?:[a-z]{1000}(?:[a-z]{1000}[a-z]{0,95}|[a-z]{0,999})|[a-z]{0,999})|[a-z]{0,999})|[a-z]{0,999})$`,
			`^[a-z]{1,4096}$`,
			`[a-z]{1,4096}`,
			`\A[a-z]{1,4096}\Z`,
		},
		{
			`^(?:a{600}b){2,4}$`,
			`^(?:a{600}b)(?:a{600}b)(?:(?:a{600}b)(?:a{600}b)?)?$`,
			`^(?:a{600}b){2,4}$`,
			`(?:a{600}b){2,4}`,
			`\A(?:a{600}b){2,4}\Z`,
		},
		{
			`^(?:a{2}){1001,}$`,
			`^(?:a{2}){500}(?:a{2}){500}(?:a{2})(?:a{2})*$`,
			`^(?:a{2}){1001,}$`,
			`(?:a{2}){1001,}`,
			`\A(?:a{2}){1001,}\Z`,
		},
	} {
		p := parse(t, c.pattern)
		if got, ok := p.Go(); got != c.goText || !ok {
			t.Errorf("%s: Go() = %s, %v", p, got, ok)
		}
		if got := p.JavaScript(); got != c.javaScript {
			t.Errorf("%s: JavaScript() = %s", p, got)
		}
		if got := p.HTML(); got != c.html {
			t.Errorf("%s: HTML() = %s", p, got)
		}
		if got := p.Python(); got != c.python {
			t.Errorf("%s: Python() = %s", p, got)
		}
	}
}

// TestPagePatternsStayAsWritten holds the published pattern to the page's letter.
func TestPagePatternsStayAsWritten(t *testing.T) {
	t.Parallel()
	for _, pattern := range pagePatterns {
		p := parse(t, pattern)
		if goText, ok := p.Go(); goText != pattern || !ok || p.JavaScript() != pattern {
			t.Errorf("%s became %s and %s", pattern, goText, p.JavaScript())
		}
	}
}

func TestGoBeyondRE2(t *testing.T) {
	t.Parallel()
	long := `^(?:(?:[` + strings.Repeat("ab", 400) + `]{600}c){2}){50}$`
	if text, ok := parse(t, long).Go(); ok || text != "" {
		t.Errorf("Go() = %d bytes, %v; want none", len(text), ok)
	}
}

// checkReadBack reads every translation as a pattern of the subset again, which
// must be the same language.
func checkReadBack(t *testing.T, p *regex.Pattern) {
	t.Helper()
	python := strings.TrimSuffix(strings.TrimPrefix(p.Python(), `\A`), `\Z`)
	texts := []string{p.JavaScript(), "^" + p.HTML() + "$", "^" + python + "$"}
	if text, ok := p.Go(); ok {
		texts = append(texts, text)
	}
	for _, text := range texts {
		back, err := regex.Parse(text)
		if err != nil && strings.Contains(err.Error(), "nest deeper") {
			continue // Go() nests where it splits
		}
		if err != nil {
			t.Errorf("%s became %s: %v", p, text, err)
			continue
		}
		sameLanguage(t, p, back)
	}
}

func TestTranslationsReadBack(t *testing.T) {
	t.Parallel()
	for _, pattern := range append(append([]string{}, pagePatterns...), trickyPatterns...) {
		checkReadBack(t, parse(t, pattern))
	}
	s := newSource(9)
	for range 200 {
		checkReadBack(t, s.parsed(t, 2))
		checkReadBack(t, parse(t, s.punctuated()))
	}
}

func TestGoRuns(t *testing.T) {
	t.Parallel()
	s := newSource(10)
	for _, pattern := range append(append([]string{}, pagePatterns...), trickyPatterns...) {
		p := parse(t, pattern)
		text, ok := p.Go()
		if !ok {
			t.Errorf("%s: Go() cannot express it", p)
			continue
		}
		re := regexp.MustCompile(text)
		for _, subject := range s.texts(p, 100) {
			if re.MatchString(subject) != p.DFA().Match(subject) {
				t.Errorf("%s: Go decides otherwise on %.80q", p, subject)
			}
		}
	}
}

// job asks another language to decide subjects by one pattern.
type job struct {
	Pattern  string   `json:"pattern"`
	Subjects []string `json:"subjects"`
	want     []bool
	name     string
}

// jobs pairs every pattern with its examples and with each ASCII character alone.
func jobs(t *testing.T, translate func(*regex.Pattern) string) []job {
	t.Helper()
	var all []job
	patterns := append(append([]string{}, pagePatterns...), trickyPatterns...)
	for s := newSource(11); len(patterns) < 300; {
		patterns = append(patterns, s.punctuated())
	}
	for _, pattern := range patterns {
		p := parse(t, pattern)
		j := job{name: pattern, Pattern: translate(p)}
		j.Subjects = append(p.DFA().Accepts(), p.DFA().Rejects()...)
		for b := range 128 {
			j.Subjects = append(j.Subjects, string(rune(b)), "a"+string(rune(b)))
		}
		for _, s := range j.Subjects {
			j.want = append(j.want, p.DFA().Match(s))
		}
		all = append(all, j)
	}
	return all
}

// decide runs the jobs through a program that reads them as JSON and answers, for
// each job, with one 0 or 1 a subject.
func decide(t *testing.T, all []job, tool string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		t.Skipf("NOT TESTED: %s is not installed, so its translation was not executed", tool)
	}
	input, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", tool, err, stderr.String())
	}
	answers := strings.Fields(string(output))
	if len(answers) != len(all) {
		t.Fatalf("%s answered %d of %d jobs", tool, len(answers), len(all))
	}
	for i, j := range all {
		for k, subject := range j.Subjects {
			if got := answers[i][k] == '1'; got != j.want[k] {
				t.Errorf("%s: %s as %s decides %.80q as %v", tool, j.name, j.Pattern, subject, got)
			}
		}
	}
}

const nodeProgram = `
const [flags, before, after] = process.argv.slice(1);
for (const job of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  const re = new RegExp(before + job.pattern + after, flags);
  console.log(job.subjects.map(s => re.test(s) ? 1 : 0).join(""));
}`

func TestJavaScriptInNode(t *testing.T) {
	t.Parallel()
	decide(t, jobs(t, (*regex.Pattern).JavaScript), "node", "-e", nodeProgram, "u", "", "")
}

// TestJavaScriptLiteralInNode puts the translation between slashes.
func TestJavaScriptLiteralInNode(t *testing.T) {
	t.Parallel()
	program := strings.Replace(nodeProgram, "new RegExp(before + job.pattern + after, flags)", `eval("/" + job.pattern + "/u")`, 1)
	decide(t, jobs(t, (*regex.Pattern).JavaScript), "node", "-e", program, "", "", "")
}

// TestHTMLInNode compiles the attribute as a browser does.
func TestHTMLInNode(t *testing.T) {
	t.Parallel()
	decide(t, jobs(t, (*regex.Pattern).HTML), "node", "-e", nodeProgram, "v", "^(?:", ")$")
}

// TestPythonInPython demands that match, fullmatch and search agree, and that no
// pattern draws a warning.
func TestPythonInPython(t *testing.T) {
	t.Parallel()
	const program = `
import json, re, sys
for job in json.load(sys.stdin):
    r = re.compile(job["pattern"])
    answers = []
    for s in job["subjects"]:
        found = {bool(f(s)) for f in (r.match, r.fullmatch, r.search)}
        assert len(found) == 1, (job["pattern"], s)
        answers.append("1" if found.pop() else "0")
    print("".join(answers))
`
	decide(t, jobs(t, (*regex.Pattern).Python), "python3", "-W", "error", "-c", program)
}

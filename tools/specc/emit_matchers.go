package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

func noMatch(f *field) string { return "must match " + f.limit.pattern.String() }

// matcher writes a pattern as length checks and class loops where it has that
// form, and as a table automaton otherwise.
func (w *wireWriter) matcher(t *wireText, p *regex.Pattern) {
	runs, flat := p.Runs()
	if !flat {
		w.Tables = true
		dfa := p.DFA()
		classOf, n := dfa.Classes()
		t.States, t.Start, t.ClassCount = dfa, dfa.Start(), n
		t.Class = strconv.Quote(string(classOf[:]))
		t.Next, t.Accept = numbers(dfa.Table()), bits(dfa.Accepting())
		return
	}
	least, most := p.Lengths()
	var terms []string
	switch {
	case least == most:
		terms = append(terms, fmt.Sprintf("len(s) == %d", least))
	case most < 0:
		terms = append(terms, fmt.Sprintf("len(s) >= %d", least))
	default:
		terms = append(terms, fmt.Sprintf("len(s) >= %d && len(s) <= %d", least, most))
	}
	t.Match = strings.Join(append(terms, w.runTerms(t.Name, runs)...), " &&\n\t\t")
}

// runTerms writes one condition for each run. Places behind the one run of
// variable length are counted from the end.
func (w *wireWriter) runTerms(name string, runs []regex.Run) (terms []string) {
	behind := 0
	for _, r := range runs {
		behind += r.Min
	}
	from := 0
	for _, r := range runs {
		behind -= r.Min
		start, end := strconv.Itoa(from), strconv.Itoa(from+r.Min)
		if from < 0 {
			start, end = fmt.Sprintf("len(s)-%d", -from), fmt.Sprintf("len(s)-%d", -from-r.Min)
		}
		if r.Min != r.Max {
			end = fmt.Sprintf("len(s)-%d", behind)
		}
		if literal := classRanges(r.Class); len(literal) == 1 && r.Min == 1 && r.Max == 1 {
			terms = append(terms, fmt.Sprintf("s[%s] == %s", start, strconv.QuoteRune(rune(literal[0]))))
		} else {
			terms = append(terms, fmt.Sprintf("%s.All(s[%s:%s])", w.class(name, r.Class), trimZero(start), trimEnd(end)))
		}
		from += r.Min
		if r.Min != r.Max {
			from = -behind
		}
	}
	return terms
}

func trimZero(index string) string {
	if index == "0" {
		return ""
	}
	return index
}

func trimEnd(index string) string {
	if index == "len(s)-0" {
		return ""
	}
	return index
}

// class returns the name of a byte class; classes that are alike share one.
func (w *wireWriter) class(owner string, c regex.Class) string {
	ranges := classRanges(c)
	if name, ok := w.classes[ranges]; ok {
		return name
	}
	name := "in" + owner
	for n := 2; ; n++ {
		if _, taken := find(w.Classes, func(c wireClass) bool { return c.Name == name }); !taken {
			break
		}
		name = fmt.Sprintf("in%s%d", owner, n)
	}
	w.classes[ranges] = name
	w.Classes = append(w.Classes, wireClass{name, ranges})
	return name
}

// classRanges writes a class as strictjson.ClassOf reads it: ranges without
// escapes, so that a hyphen that is no range stands at the end.
func classRanges(c regex.Class) string {
	var text, hyphen string
	for low := 0; low < 128; low++ {
		if low == '-' && c.Contains('-') {
			hyphen = "-"
			continue
		}
		high := low
		for high+1 < 128 && high+1 != '-' && c.Contains(byte(high+1)) {
			high++
		}
		switch {
		case !c.Contains(byte(low)):
			continue
		case high > low+1:
			text += string(rune(low)) + "-" + string(rune(high))
		case high == low+1:
			text += string(rune(low)) + string(rune(high))
		default:
			text += string(rune(low))
		}
		low = high
	}
	return text + hyphen
}

func quotedList(values []string) string {
	var quoted []string
	for _, value := range values {
		quoted = append(quoted, strconv.Quote(value))
	}
	return strings.Join(quoted, ", ")
}

func numbers(list []uint16) string {
	var text strings.Builder
	for i, n := range list {
		if i%24 == 0 {
			text.WriteString("\n\t\t")
		}
		fmt.Fprintf(&text, "%d, ", n)
	}
	return text.String()
}

func bits(list []bool) string {
	var text strings.Builder
	for i, accepts := range list {
		if accepts {
			fmt.Fprintf(&text, "%d: true, ", i)
		}
	}
	return text.String()
}

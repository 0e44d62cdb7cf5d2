package main

import (
	"context"
	"fmt"
)

// A goal is something promised; measure returns a line for each part of it.
type goal struct {
	name    string
	measure func(ctx context.Context, lab *lab) ([]line, error)
}

// A line compares one number of ours with one of a peer's.
type line struct {
	Name   string  `json:"name"`
	Unit   unit    `json:"unit,omitempty"` // of Ours and Peer
	Ours   float64 `json:"ours"`
	Peer   float64 `json:"peer"`           // or a fixed bound, where the goal is one
	Ratio  float64 `json:"ratio"`          // the median of the rounds' ratios
	Goal   string  `json:"goal,omitempty"` // what the ratio has to be; empty where the line only informs
	Result result  `json:"result"`
	Note   string  `json:"note,omitempty"`
}

type result string

const (
	okResult     result = "ok"
	shortResult  result = "short"
	infoResult   result = "info"
	brokenResult result = "BROKEN"
	absentResult result = "left out"
)

// compared is a line for ours against a peer, round by round, judged by a bound on
// ours/peer. It shows the median of either and the median of the rounds' ratios:
// what disturbs the machine for a while disturbs both sides of a round.
func compared(name string, u unit, ours, peer []float64, b bound) line {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i] / peer[i]
	}
	l := line{Name: name, Unit: u, Ours: median(ours), Peer: median(peer), Ratio: median(ratios), Goal: b.text, Result: infoResult}
	if b.holds != nil {
		l.Result = shortResult
		if b.holds(l.Ratio) {
			l.Result = okResult
		}
	}
	return l
}

// bounded is a line for one number of ours against a fixed or a single other one.
func bounded(name string, u unit, ours, limit float64, b bound) line {
	return compared(name, u, []float64{ours}, []float64{limit}, b)
}

// withNote says under which conditions a line was measured.
func (l line) withNote(format string, args ...any) line {
	l.Note = fmt.Sprintf(format, args...)
	return l
}

// A bound is what a ratio has to keep to.
type bound struct {
	text  string
	holds func(ratio float64) bool
}

func atMost(text string, most float64) bound {
	return bound{"≤ " + text, func(ratio float64) bool { return ratio <= most }}
}

func atLeast(text string, least float64) bound {
	return bound{"≥ " + text, func(ratio float64) bool { return ratio >= least }}
}

// information is the bound of a line that only informs.
var information bound

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// A report is what one run found.
type report struct {
	Machine machine   `json:"machine"`
	Date    time.Time `json:"date"`
	Lines   []line    `json:"lines"`
}

func (r report) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// print writes the table.
func (r report) print(w io.Writer) {
	rows := [][]string{{"GOAL", "OURS", "PEER", "RATIO", "WANTED", "RESULT"}}
	for _, l := range r.Lines {
		row := []string{l.Name, "", "", "", l.Goal, string(l.Result)}
		if l.Unit != "" {
			row[1], row[2], row[3] = l.Unit.format(l.Ours), l.Unit.format(l.Peer), ratio(l.Ratio)
		}
		rows = append(rows, row)
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i >= 1 && i <= 3 {
				b.WriteString(pad + cell + "  ") // numbers to the right
			} else {
				b.WriteString(cell + pad + "  ")
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	for _, l := range r.Lines {
		if l.Note != "" {
			fmt.Fprintf(w, "  %s: %s\n", l.Name, l.Note)
		}
	}
}

// ratio shows small ratios as the fraction that goals are stated in.
func ratio(r float64) string {
	if r > 0 && r < 0.4 {
		return fmt.Sprintf("1/%.1f", 1/r)
	}
	return fmt.Sprintf("%.2f", r)
}

// A unit says how a number is shown.
type unit string

const (
	nanoseconds unit = "ns"
	allocations unit = "allocations"
	perSecond   unit = "/s"
	megabytes   unit = "MB"
	seconds     unit = "s"
	distance    unit = "apart" // of two distributions, from 0 to 1
)

func (u unit) format(value float64) string {
	switch u {
	case nanoseconds:
		return significant(time.Duration(value))
	case allocations:
		return fmt.Sprintf("%.0f allocs", value)
	case perSecond:
		return fmt.Sprintf("%.0f/s", value)
	case distance:
		return fmt.Sprintf("%.4f", value)
	default:
		return fmt.Sprintf("%.1f %s", value, u)
	}
}

// significant rounds a duration to three digits.
func significant(d time.Duration) string {
	if d <= 0 {
		return d.String()
	}
	digits := int(math.Log10(float64(d)))
	step := time.Duration(math.Pow10(max(0, digits-2)))
	return d.Round(step).String()
}

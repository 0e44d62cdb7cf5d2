package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A position in a page: line and column count from 1, columns in characters.
type position struct {
	file      string
	line, col int
}

func (p position) String() string { return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.col) }

// A mistake says where a page is wrong, what is wrong, and what would be right.
type mistake struct {
	at   position
	text string
}

// mistakes collects everything that is wrong, so that one run reports it all.
type mistakes struct{ list []mistake }

func (m *mistakes) add(at position, format string, args ...any) {
	m.list = append(m.list, mistake{at, fmt.Sprintf(format, args...)})
}

// sorted returns the mistakes in the order of the pages, each once.
func (m *mistakes) sorted() []mistake {
	list := slices.Clone(m.list)
	slices.SortFunc(list, func(a, b mistake) int {
		return cmp.Or(
			strings.Compare(a.at.file, b.at.file),
			cmp.Compare(a.at.line, b.at.line),
			cmp.Compare(a.at.col, b.at.col),
			strings.Compare(a.text, b.text),
		)
	})
	return slices.Compact(list)
}

// A cell is a piece of text and where it stands.
type cell struct {
	text  string
	at    position
	pipes []int // where text has a pipe that was written \|, in characters
}

// span returns what stands inside the code span that the cell is, or the cell
// itself where it is none.
func (c cell) span() cell {
	if inside, ok := strings.CutPrefix(c.text, "`"); ok {
		if inside, ok = strings.CutSuffix(inside, "`"); ok && !strings.Contains(inside, "`") {
			return c.part(1, inside)
		}
	}
	return c
}

// code is the text of span.
func (c cell) code() string { return c.span().text }

// part returns a piece of a cell that begins so many characters behind its start.
func (c cell) part(start int, text string) cell {
	out := cell{text: text, at: c.at}
	out.at.col += start
	for _, pipe := range c.pipes {
		if pipe < start {
			out.at.col++
		} else {
			out.pipes = append(out.pipes, pipe-start)
		}
	}
	return out
}

// The blocks of a page, in the order in which they stand.
type (
	block   interface{ position() position }
	heading struct {
		level int
		title cell
	}
	paragraph struct{ cell }
	bullet    struct{ key, value cell } // "- Key: value"
	table     struct {
		at   position
		head []cell
		rows [][]cell
	}
	fence struct {
		at   position // of the first line inside
		info string   // such as "json request"
		body string
	}
)

func (b heading) position() position   { return b.title.at }
func (b paragraph) position() position { return b.at }
func (b bullet) position() position    { return b.key.at }
func (b table) position() position     { return b.at }
func (b fence) position() position     { return b.at }

// readPage splits a page of GitHub-flavoured Markdown into blocks. It knows
// what the grammar in spec/README.md knows, and no more.
func readPage(file, text string, wrong *mistakes) []block {
	r := pageReader{file: file, lines: strings.Split(text, "\n"), wrong: wrong}
	for r.next = range r.lines {
		r.clean()
	}
	r.next = 0
	for r.next < len(r.lines) {
		r.block()
	}
	return r.blocks
}

type pageReader struct {
	file   string
	lines  []string
	next   int
	blocks []block
	wrong  *mistakes
}

func (r *pageReader) at(col int) position { return position{r.file, r.next + 1, col} }

// clean refuses characters that no editor shows, and takes them out of further messages.
func (r *pageReader) clean() {
	line := []rune(strings.TrimSuffix(r.lines[r.next], "\r"))
	for i, char := range line {
		if char != '\t' && unicode.IsControl(char) || char == '\ufeff' || char == utf8.RuneError {
			r.wrong.add(r.at(i+1), "the character %U has no place in a page; a page is clean UTF-8", char)
			line[i] = utf8.RuneError
		}
	}
	r.lines[r.next] = string(line)
}

func (r *pageReader) block() {
	line := strings.TrimRight(r.lines[r.next], " \t\r")
	switch {
	case line == "":
		r.next++
	case strings.HasPrefix(line, "```"):
		r.fence(line)
	case strings.HasPrefix(line, "#"):
		r.heading(line)
	case strings.HasPrefix(line, "|"):
		r.table()
	case strings.HasPrefix(line, "- ") && strings.Contains(line, ": "):
		key, value, _ := strings.Cut(line[2:], ": ")
		r.blocks = append(r.blocks, bullet{r.cell(key, 2), r.cell(value, 4+utf8.RuneCountInString(key))})
		r.next++
	default:
		r.paragraph()
	}
}

func (r *pageReader) heading(line string) {
	level := len(line) - len(strings.TrimLeft(line, "#"))
	title := strings.TrimSpace(line[level:])
	if title == "" || line[level] != ' ' {
		r.wrong.add(r.at(1), "a heading is written \"%s title\"", strings.Repeat("#", level))
	}
	r.blocks = append(r.blocks, heading{level, r.cell(line[level:], level)})
	r.next++
}

func (r *pageReader) paragraph() {
	start, text := r.at(1), []string{}
	for r.next < len(r.lines) {
		line := r.lines[r.next]
		if len(text) > 0 && startsBlock(line) {
			break
		}
		text = append(text, strings.TrimSpace(line))
		r.next++
	}
	r.blocks = append(r.blocks, paragraph{cell{text: strings.Join(text, " "), at: start}})
}

func startsBlock(line string) bool {
	if strings.TrimSpace(line) == "" {
		return true
	}
	for _, mark := range []string{"#", "|", "```", "- "} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return false
}

func (r *pageReader) fence(open string) {
	start := r.at(1)
	r.next++
	f := fence{at: r.at(1), info: strings.TrimSpace(strings.TrimLeft(open, "`"))}
	var body []string
	for r.next < len(r.lines) {
		line := strings.TrimRight(r.lines[r.next], "\r")
		r.next++
		if strings.TrimSpace(line) == "```" {
			f.body = strings.Join(body, "\n")
			r.blocks = append(r.blocks, f)
			return
		}
		body = append(body, line)
	}
	r.wrong.add(start, "the code block is never closed; end it with a line of three backticks")
}

func (r *pageReader) table() {
	t := table{at: r.at(1)}
	lines, ruled := 0, true
	for ; r.next < len(r.lines) && strings.HasPrefix(r.lines[r.next], "|"); r.next++ {
		row := r.row(strings.TrimRight(r.lines[r.next], " \t\r"))
		if lines++; lines == 1 {
			t.head = row
			continue
		}
		if len(row) != len(t.head) {
			r.wrong.add(r.at(1), "the row has %d cells and the head has %d; an empty cell keeps its pipes, a pipe inside a cell is written \\|", len(row), len(t.head))
		} else if lines > 2 {
			t.rows = append(t.rows, row)
		} else if ruled = isRuler(row); !ruled {
			r.wrong.add(r.at(1), "the second line of a table rules its head off; write |---| with dashes in each cell")
		}
	}
	if lines < 3 && ruled {
		r.wrong.add(t.at, "the table has no rows")
	}
	if r.next < len(r.lines) && !startsBlock(r.lines[r.next]) {
		r.wrong.add(r.at(1), "the line belongs to the table above it; begin it with a pipe, or leave an empty line before it")
	}
	r.blocks = append(r.blocks, t)
}

// row splits a line at its pipes; \| is a pipe inside a cell.
func (r *pageReader) row(line string) []cell {
	var cells []cell
	runes, start := []rune(line), 1
	for i := 1; i < len(runes); i++ {
		if runes[i] == '|' && runes[i-1] != '\\' {
			cells = append(cells, r.spanned(string(runes[start:i]), start))
			start = i + 1
		}
	}
	if start < len(runes) {
		r.wrong.add(r.at(start+1), "the row must end with a pipe")
		cells = append(cells, r.spanned(string(runes[start:]), start))
	}
	return cells
}

// spanned is cell for a table, where a pipe ends a cell even inside a code span.
func (r *pageReader) spanned(raw string, start int) cell {
	c := r.cell(raw, start)
	if strings.Count(c.text, "`")%2 != 0 {
		r.wrong.add(c.at, "the code span does not end in this cell: a pipe inside a code span splits the cell; write \\|")
	}
	var text []rune
	for _, char := range c.text {
		if last := len(text) - 1; char == '|' {
			text[last] = char // in place of the backslash
			c.pipes = append(c.pipes, last)
		} else {
			text = append(text, char)
		}
	}
	c.text = string(text)
	return c
}

// cell is a text without the blanks around it; start characters stand before it on its line.
func (r *pageReader) cell(raw string, start int) cell {
	text := strings.TrimLeftFunc(raw, unicode.IsSpace)
	blanks := utf8.RuneCountInString(raw[:len(raw)-len(text)])
	return cell{text: strings.TrimSpace(text), at: r.at(start + 1 + blanks)}
}

var rulerForm = regexp.MustCompile(`^:?-+:?$`)

func isRuler(row []cell) bool {
	return !slices.ContainsFunc(row, func(c cell) bool { return !rulerForm.MatchString(c.text) })
}

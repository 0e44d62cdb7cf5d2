package main

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

var (
	charsForm = regexp.MustCompile(`^at most ([0-9][0-9,]*) characters$`)
	itemsForm = regexp.MustCompile(`^(?:at most ([0-9][0-9,]*)|([0-9][0-9,]*)-([0-9][0-9,]*)) items$`)
	rangeForm = regexp.MustCompile(`^(-?[0-9][0-9,]*)-(-?[0-9][0-9,]*)$`)
)

// constraints reads a constraint cell; what a type cannot have is refused. Of an
// array, all but the number of items is about its elements.
func (p *parser) constraints(c cell, f *field) {
	said := map[string]bool{}
	for _, part := range splitCell(c, ';') {
		if part.text == "" {
			continue
		}
		what := p.constraint(part, f)
		if said[what] {
			p.wrong.add(part.at, "%q is a second limit of its sort; keep one", part.text)
		}
		said[what] = what != ""
	}
	p.checkDefault(f.kind, &f.limit)
	if f.scalar == nil {
		p.checkLength(&f.limit)
	}
}

// splitCell splits a cell at a separator, but not inside a code span.
func splitCell(c cell, separator rune) []cell {
	var parts []cell
	runes, start, inCode := []rune(c.text), 0, false
	for i := 0; i <= len(runes); i++ {
		if i < len(runes) && runes[i] == '`' {
			inCode = !inCode
		}
		if i < len(runes) && (runes[i] != separator || inCode) {
			continue
		}
		text := string(runes[start:i])
		blanks := len(text) - len(strings.TrimLeft(text, " "))
		parts = append(parts, c.part(start+blanks, strings.TrimSpace(text)))
		start = i + 1
	}
	return parts
}

// constraint reads one constraint and returns its sort, "" for one that is unknown.
func (p *parser) constraint(c cell, f *field) string {
	limit, element := &f.limit, f.kind
	if f.kind == kindArray {
		element = f.element
	}
	switch text := c.text; {
	case charsForm.MatchString(text):
		p.mustBe(c, element, kindString)
		if p.named(c, f) {
			return ""
		}
		limit.maxChars = int(p.number(c, charsForm.FindStringSubmatch(text)[1]))
		if limit.maxChars == 0 {
			p.wrong.add(c.at, "%q allows nothing", text)
		}
		return "characters"
	case strings.HasPrefix(text, "matches "):
		p.mustBe(c, element, kindString)
		if p.named(c, f) {
			return ""
		}
		p.pattern(c, limit)
		return "matches"
	case itemsForm.MatchString(text):
		p.mustBe(c, f.kind, kindArray)
		m := itemsForm.FindStringSubmatch(text)
		if m[1] != "" {
			limit.maxItems = int(p.number(c, m[1]))
		} else {
			limit.minItems, limit.maxItems = int(p.number(c, m[2])), int(p.number(c, m[3]))
		}
		if limit.maxItems == 0 || limit.minItems > limit.maxItems {
			p.wrong.add(c.at, "%q allows nothing; the least must not be more than the most", text)
		}
		return "items"
	case rangeForm.MatchString(text):
		p.mustBe(c, element, kindInteger)
		m := rangeForm.FindStringSubmatch(text)
		limit.hasRange, limit.min, limit.max = true, p.number(c, m[1]), p.number(c, m[2])
		if limit.min > limit.max {
			p.wrong.add(c.at, "the range %q is empty; write the smaller number first", text)
		}
		return "range"
	case strings.HasPrefix(text, "default "):
		limit.hasDefault, limit.deflt, limit.defaultAt = true, c.part(0, strings.TrimPrefix(text, "default ")).code(), c.at
		return "default"
	case text == "at least one of its fields":
		p.mustBe(c, element, kindObject)
		limit.atLeastOne = true
		return text
	case text == "secret":
		p.mustBe(c, element, kindString)
		limit.secret = true
		return text
	}
	p.wrong.add(c.at, "unknown constraint %q; known are: at most N characters, matches `^…$`, A-B, at most N items, A-B items, default X, at least one of its fields, secret", c.text)
	return ""
}

func (p *parser) mustBe(c cell, is, want kind) {
	if is != want {
		p.wrong.add(c.at, "%q is for type %s, and this is %s", c.text, want, is)
	}
}

// named refuses a limit beside a named scalar, whose limits stand once.
func (p *parser) named(c cell, f *field) bool {
	if f.scalar != nil {
		p.wrong.add(c.at, "the limits of %s stand in types.md; drop %q, or name another type", f.scalar.name, c.text)
	}
	return f.scalar != nil
}

func (p *parser) number(c cell, digits string) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(digits, ",", ""), 10, 64)
	if err != nil {
		p.wrong.add(c.at, "%q is not a number that fits 64 bits", digits)
	}
	return n
}

func (p *parser) pattern(c cell, limit *limits) {
	source := c.part(len("matches "), strings.TrimPrefix(c.text, "matches ")).span()
	limit.patternAt = source.at
	pattern, err := regex.Parse(source.text)
	if syntax := (*regex.SyntaxError)(nil); errors.As(err, &syntax) {
		before := utf8.RuneCountInString(source.text[:syntax.Offset])
		p.wrong.add(source.part(before, "").at, "the pattern is outside the allowed subset: %s", syntax.Msg)
	}
	limit.pattern = pattern
}

// checkLength refuses a pattern that its own length limit can never satisfy.
func (p *parser) checkLength(limit *limits) {
	if limit.pattern == nil || limit.maxChars == 0 {
		return
	}
	if least, _ := limit.pattern.Lengths(); least > limit.maxChars {
		p.wrong.add(limit.patternAt, "the pattern needs at least %d characters and the limit is %d; raise the limit or shorten the pattern", least, limit.maxChars)
	}
}

// checkDefault refuses a default that the field itself would refuse.
func (p *parser) checkDefault(k kind, limit *limits) {
	if !limit.hasDefault {
		return
	}
	why := ""
	switch k {
	case kindInteger:
		n, err := strconv.ParseInt(limit.deflt, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != limit.deflt {
			why = "is not an integer"
		} else if limit.hasRange && (n < limit.min || n > limit.max) {
			why = "is outside the range " + rangeText(limit)
		}
	case kindBoolean:
		if limit.deflt != "true" && limit.deflt != "false" {
			why = "is neither true nor false"
		}
	case kindEnum:
		if !slices.Contains(limit.enum, limit.deflt) {
			why = "is none of " + strings.Join(limit.enum, ", ")
		}
	case kindString:
		why = refusesText(limit, limit.deflt)
	default:
		why = "stands on a type that takes none: " + k.String()
	}
	if why != "" {
		p.wrong.add(limit.defaultAt, "the default %q %s", limit.deflt, why)
	}
}

// refusesText says why a string breaks its limits, or "".
func refusesText(limit *limits, text string) string {
	if limit.maxChars > 0 && len([]rune(text)) > limit.maxChars {
		return "has more than " + strconv.Itoa(limit.maxChars) + " characters"
	}
	if limit.pattern != nil && !limit.pattern.DFA().Match(text) {
		return "does not match " + limit.pattern.String()
	}
	return ""
}

func rangeText(limit *limits) string {
	return strconv.FormatInt(limit.min, 10) + "-" + strconv.FormatInt(limit.max, 10)
}

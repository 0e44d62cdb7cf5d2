package main

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	actionForm     = regexp.MustCompile(`^[a-z]+:[a-z]+(-[a-z]+)*:[a-z]+(-[a-z]+)*$`)
	targetForm     = regexp.MustCompile(`^([a-z]+(?:-[a-z]+)*)/\{([A-Za-z0-9]+)\}(?: of \{([A-Za-z0-9]+)\})?$`)
	alsoForm       = regexp.MustCompile("^`([^`]+)` when `([^`]+)`$")
	answersForm    = regexp.MustCompile("^([0-9]{3}) when `([^`]+)`$")
	streamForm     = regexp.MustCompile("^([A-Za-z0-9]+) after `([^`]+)`$")
	statusForm     = regexp.MustCompile(`^(v[0-9]+\.[0-9]+) \(([a-z]+)\)$`)
	allowedTargets = []string{"compute-pool", "compute-site", "tenant"}
)

// methodHead reads what stands between a method's heading and its tables.
func (p *parser) methodHead(m *method, at position, blocks []block) {
	want := "POST /api/compute/" + m.group.name + "/" + m.name
	m.path = strings.TrimPrefix(want, "POST ")
	prose := blocks
	if len(blocks) > 0 {
		first, ok := blocks[0].(paragraph)
		if !ok || first.code() != want {
			p.wrong.add(blocks[0].position(), "the section must open with `%s`, the path that follows from group and method", want)
		} else {
			prose = blocks[1:]
		}
	}
	m.prose = proseOf(prose)
	m.summary = firstSentence(m.prose)
	if m.prose == "" {
		p.wrong.add(at, "the method %s does not say what it promises", m.name)
	}
	seen := map[string]cell{}
	for _, b := range blocks {
		if fact, ok := b.(bullet); ok {
			if _, twice := seen[fact.key.text]; twice {
				p.wrong.add(fact.key.at, "%q stands there twice", fact.key.text)
			}
			seen[fact.key.text] = fact.key
			p.fact(m, fact)
		}
	}
	needs := []string{"Kind", "Authorization", "Module", "Phase", "Retry", "Denial"}
	if m.decides != byAction {
		needs = needs[:len(needs)-1]
		for _, key := range []string{"Denial", "Also"} {
			if fact, ok := seen[key]; ok {
				p.wrong.add(fact.at, "the authorization of %s is %s, so that there is no decision that %s could be about; drop it", m.name, m.decides, key)
			}
		}
	}
	for _, key := range needs {
		if _, ok := seen[key]; !ok {
			p.wrong.add(at, "the method %s does not say its %s; add a line \"- %s: …\"", m.name, key, key)
		}
	}
}

func (p *parser) fact(m *method, b bullet) {
	value := b.value.span()
	switch b.key.text {
	case "Kind":
		m.kind = p.oneOf(value, "mutation", "read")
		m.facts.kind = value
	case "Authorization":
		m.facts.authorization = value
		p.authorization(m, value)
	case "Module":
		m.module = value.text
	case "Phase":
		if parts := statusForm.FindStringSubmatch(value.text); parts == nil {
			p.wrong.add(value.at, "%q is no phase; write it as v0.1 (registered)", value.text)
		} else {
			m.phase = parts[1]
			m.facts.phase, m.facts.status = value.part(0, parts[1]), value.part(len(parts[1])+2, parts[2])
		}
	case "Retry":
		m.retry = p.oneOf(value, "key", "natural", "none")
	case "Replay":
		m.replay, _, _ = strings.Cut(p.oneOf(value, "before the decision", "after the decision"), " ")
	case "Denial":
		m.denial = p.oneOf(value, "hidden", "shown")
	case "Also":
		if parts := alsoForm.FindStringSubmatch(b.value.text); parts == nil {
			p.wrong.add(value.at, "write the further action as `action` when `field`, not %q", value.text)
		} else {
			m.also = append(m.also, also{parts[1], parts[2], value.at})
		}
	case "Stream":
		p.streamFact(m, b.value)
	case "Answers":
		p.answersFact(m, b.value)
	case "Columns":
		for _, column := range splitCell(b.value, ',') {
			m.columns = append(m.columns, column.span())
		}
	default:
		p.wrong.add(b.key.at, "unknown fact %q; a method has Kind, Authorization, Also, Module, Phase, Retry, Replay, Denial, Stream, Answers and Columns", b.key.text)
	}
}

func (p *parser) streamFact(m *method, value cell) {
	parts := streamForm.FindStringSubmatch(value.text)
	if parts == nil {
		p.wrong.add(value.at, "write the stream as Record after `field`, not %q", value.text)
		return
	}
	r, ok := find(p.spec.records, func(r *record) bool { return r.name == parts[1] })
	if !ok {
		p.wrong.add(value.at, "unknown record %q", parts[1])
	}
	m.stream = &stream{r, parts[2]}
}

// answersFact reads "202 when `field`".
func (p *parser) answersFact(m *method, value cell) {
	parts := answersForm.FindStringSubmatch(value.text)
	if parts == nil {
		p.wrong.add(value.at, "write the other status as 202 when `field`, not %q", value.text)
		return
	}
	status, _ := strconv.Atoi(parts[1]) // three digits
	if status < 201 || status > 299 || status == http.StatusNoContent || status == http.StatusResetContent {
		p.wrong.add(value.at, "%d is no other status of a success with an answer; it lies in 201-299 and is not 204 or 205", status)
	}
	m.other = &otherStatus{status, parts[2], value.at}
}

// authorization reads "action @ kind/{id} of {owner} or kind/{id}", "none" or "self".
func (p *parser) authorization(m *method, c cell) {
	if says := credential(c.text); says == byToken || says == byNode {
		m.decides = says
		return
	}
	action, places, ok := strings.Cut(c.text, " @ ")
	if !ok || !actionForm.MatchString(action) {
		p.wrong.add(c.at, "write the authorization as `module:things:verb @ kind/{id}`, none or self, not %q", c.text)
		return
	}
	m.action = action
	behind := len(action) + len(" @ ")
	for _, text := range strings.Split(places, " or ") {
		place := c.part(behind, text)
		behind += utf8.RuneCountInString(text) + len(" or ")
		parts := targetForm.FindStringSubmatch(text)
		if parts == nil {
			p.wrong.add(place.at, "write the resource as kind/{id}, where id is an input field, not %q", text)
			continue
		}
		t := target{parts[1], parts[2], parts[3], place.at}
		if t.owner == "" {
			t.owner = "tenantId"
		}
		p.oneOf(place.part(0, t.kind), allowedTargets...)
		m.targets = append(m.targets, t)
	}
}

func (p *parser) oneOf(c cell, values ...string) string {
	for _, value := range values {
		if c.text == value {
			return value
		}
	}
	p.wrong.add(c.at, "%q is none of: %s", c.text, strings.Join(values, ", "))
	return ""
}

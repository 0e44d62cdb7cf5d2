package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A trace is the log of a bcserver that logs every statement.
type trace struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (t *trace) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// rows returns what was logged, line by line.
func (t *trace) rows() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Split(strings.TrimSuffix(t.text.String(), "\n"), "\n")
}

// A traceRow is what interests us in a line of the log.
type traceRow struct {
	Message   string `json:"msg"`
	SQL       string `json:"sql"`
	RequestID string `json:"requestId"`
}

// statementsOfCreate returns the statements that one joinTokens.create executes
// between its first and its last, in their order. It asks a bcserver that logs
// them, so that the peer always does what the server does today.
func statementsOfCreate(ctx context.Context, l *lab, url, key string) ([]string, error) {
	data, err := l.folder("trace")
	if err != nil {
		return nil, err
	}
	log := &trace{}
	p, err := l.start(ctx, log, "--db", url, "--data", data, "--log-level", "trace", "--log-format", "json")
	if err != nil {
		return nil, err
	}
	defer p.stop()
	p.key = key
	c, err := p.dial()
	if err != nil {
		return nil, err
	}
	defer c.close()
	// The first call connects; and where a transaction in the background fell
	// between the statements of a call, another call is looked at.
	for attempt := range 20 {
		before := len(log.rows())
		c.requestID = fmt.Sprintf("bench-trace-%d", attempt)
		status, answer, err := c.post(createPath, tokenBody(c.requestID))
		if err != nil || status != 200 {
			return nil, fmt.Errorf("joinTokens.create: %d %s: %w", status, answer, orUnexpected(err))
		}
		var made struct{ JoinToken struct{ ID string } }
		if err := json.Unmarshal(answer, &made); err != nil {
			return nil, err
		}
		found, err := ownStatements(log, before, c.requestID, made.JoinToken.ID, keyID(key))
		if err != nil {
			return nil, err
		}
		if attempt > 0 && found != nil {
			return templates(found, c.requestID, made.JoinToken.ID), nil
		}
	}
	return nil, fmt.Errorf("the statements of a create cannot be told from others: %w", errUnexpected)
}

// ownStatements picks a call's statements from what was logged since. A statement
// is the call's when it names what only the call knows; nil, when a transaction
// of something else makes BEGIN and COMMIT ambiguous.
func ownStatements(log *trace, since int, requestID, token, key string) ([]string, error) {
	var found []string
	begins, commits := 0, 0
	deadline := time.Now().Add(5 * time.Second)
	for i := since; ; {
		rows := log.rows()
		if i >= len(rows)-1 { // the last one may not be whole yet
			if time.Now().After(deadline) {
				return nil, fmt.Errorf("the call is not in the log: %w", errUnexpected)
			}
			time.Sleep(10 * time.Millisecond)
		}
		for ; i < len(rows); i++ {
			var row traceRow
			if json.Unmarshal([]byte(rows[i]), &row) != nil {
				break
			}
			switch {
			case row.Message == "call" && row.RequestID == requestID:
				if begins != 1 || commits != 1 {
					return nil, nil
				}
				return found, nil
			case row.SQL == "BEGIN":
				begins++
			case row.SQL == "COMMIT":
				commits++
			case !containsAny(row.SQL, requestID, token, key, "'"+pool+"'"):
				continue
			}
			found = append(found, strings.Join(strings.Fields(row.SQL), " "))
		}
	}
}

func containsAny(text string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// keyID is the id within an API key bck_<id>.<secret>.
func keyID(key string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(key, "bck_"), ".")
	return id
}

// tokenBody is a joinTokens.create with every field, under a key of its own.
func tokenBody(key string) string {
	return `{"tenantId":"` + tenant + `","poolId":"` + pool + `","maxUses":8,"ttlSeconds":3600,` +
		`"expect":{"productUuid":"4c4c4544-0051-3010-8052-b4c04f4d3132","serial":"CN-7792/B4:Q3+1",` +
		`"mac":"a0:36:9f:7b:0c:1d","gpuUuid":"GPU-8a56a4bc-ef2d-4d0e-b2a5-0f4c7d6e9a01"},` +
		`"allowReclaim":true,"hosted":"kubernetes","idempotencyKey":"` + key + `"}`
}

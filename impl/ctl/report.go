package ctl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A usageError says why a command cannot be sent as it is.
type usageError struct {
	command *cobra.Command
	text    string
}

func (e *usageError) Error() string { return e.text }

func misuse(c *cobra.Command, format string, args ...any) error {
	return &usageError{c, fmt.Sprintf(format, args...)}
}

// A refusal ends a call that was answered.
type refusal struct{ error }

// A lostError is a lost answer with the command that ends the record.
type lostError struct {
	*client.LostAnswerError
	revoke func(id string) string
}

// flagError turns what the flag parser says into a usage error that names the
// flag and what it takes, and does not repeat what a secret may be in.
func flagError(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	switch {
	case errors.As(err, &empty):
		text := "--" + empty.GetFlag().Name + " needs a value"
		if v, ok := empty.GetFlag().Value.(*value); ok && v.field.Limits != "" {
			text += ": " + v.field.Limits
		}
		return misuse(c, "%s", text)
	case errors.As(err, &invalid):
		return misuse(c, "--%s: %v", invalid.GetFlag().Name, invalid.Unwrap())
	case errors.As(err, &unknown) && (unknown.GetSpecifiedName() == "key" || unknown.GetSpecifiedName() == "token"):
		return misuse(c, "%v; a key is never an argument, since others can read those: use --key-file or %s", err, envKey)
	}
	return misuse(c, "%v", err)
}

// report writes an error and returns the exit code.
func (p *program) report(command *cobra.Command, err error) int {
	var usage *usageError
	var lost *lostError
	var refused *client.Error
	var answered *refusal
	var none *client.UnansweredError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &lost):
		p.reportLost(lost)
		return exitRefused
	case errors.As(err, &refused):
		p.reportRefused(refused)
		return exitRefused
	case errors.As(err, &answered):
		p.say("%v", answered)
		return exitRefused
	case errors.As(err, &none):
		p.reportUnanswered(none)
		return exitUnreachable
	case errors.As(err, &usage):
		command = usage.command
	}
	for _, line := range strings.Split(err.Error(), "\n") { // cobra's own errors are all of usage, too
		p.say("%s", line)
	}
	fmt.Fprintf(p.stderr, "usage: %s\nsee %s --help\n", usageLine(command), command.CommandPath())
	return exitUsage
}

// say writes one line to standard error; what came from elsewhere cannot
// steer the terminal.
func (p *program) say(format string, args ...any) {
	fmt.Fprintln(p.stderr, printable(fmt.Sprintf(format, args...)))
}

func (p *program) reportRefused(e *client.Error) {
	name := string(e.Code)
	if name == "" {
		name = fmt.Sprintf("HTTP %d %s", e.Status, e.Title)
	}
	if e.Reason != "" {
		name += " (" + string(e.Reason) + ")"
	}
	p.say("%s", strings.TrimSuffix(name+": "+e.Detail, ": "))
	for _, v := range e.Violations {
		field := v.Field
		if field == "" {
			field = "(body)"
		}
		p.say("  %s: %s (%s)", field, v.Message, v.Rule)
	}
	if e.RequestID != "" {
		p.say("  request id: %s", e.RequestID)
	}
	if e.Code == client.ErrorCodeUNAUTHENTICATED && !p.hasKey {
		p.say("  no key was given: use --key-file or %s", envKey)
	}
}

func (p *program) reportLost(e *lostError) {
	p.say("%s: the record %s exists; its secret was shown once, in an answer that is lost", e.Operation, e.ID)
	if e.revoke != nil {
		p.say("end it, then create another with another idempotency key:")
		p.say("  %s", e.revoke(e.ID))
	}
}

func (p *program) reportUnanswered(e *client.UnansweredError) {
	tries := ""
	if e.Attempts > 1 {
		tries = fmt.Sprintf(" after %d attempts", e.Attempts)
	}
	p.say("%s: no answer%s: %v", e.Operation, tries, e.Err)
	if e.IdempotencyKey != "" {
		p.say("it may have taken effect; repeat it with --idempotency-key %s, and it cannot take effect twice", e.IdempotencyKey)
	}
}

package ctl

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/bettercompute/bettercompute/gen/cli"
	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/spf13/cobra"
)

// idempotencyPath is the field that is filled in where nothing is given.
const idempotencyPath = "idempotencyKey"

// methodCommand is one method with a flag for each field.
func (p *program) methodCommand(g cli.Group, m cli.Method) *cobra.Command {
	values := make(map[string]*value)
	var whole string // what --json says
	var all bool
	c := &cobra.Command{
		Use:               m.Name,
		Short:             plain(m.Short),
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().SortFlags = false
	for _, f := range m.Fields {
		if f.Flag == "" {
			continue
		}
		v := &value{field: f, stdin: p.stdin}
		values[f.Path] = v
		flag := c.Flags().VarPF(v, f.Flag, "", plain(f.Notes))
		offers := f.Values
		if f.Type == cli.Boolean {
			flag.NoOptDefVal, offers = "true", []string{"true", "false"}
		}
		if !f.Secret {
			complete(c, f.Flag, offers)
		}
	}
	c.Flags().StringVar(&whole, "json", "", "the whole input as JSON: @file, - for standard input, or the JSON itself; flags override its members")
	if m.Page != nil {
		c.Flags().BoolVar(&all, "all", false, "follow the cursor to the last page")
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		body, err := p.input(c, m, values, whole)
		if err != nil {
			return err
		}
		if !isFormat(p.format) {
			return misuse(c, "--output: %q is none of %s", p.format, strings.Join(formats, ", "))
		}
		sdk, err := p.dial(c)
		if err != nil {
			return err
		}
		call := &call{program: p, sdk: sdk, group: g, method: m, body: body, revoke: p.revokeCommand(c, g, m, body)}
		switch {
		case m.Stream:
			return call.stream(c.Context())
		case all:
			return call.all(c.Context())
		}
		return call.one(c.Context())
	}
	return c
}

// noArguments refuses everything that is no flag.
func noArguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case args[0] == "true" || args[0] == "false":
		return misuse(c, "unexpected argument %q; a boolean flag takes its value after an equals sign, as in --flag=%s", args[0], args[0])
	}
	return misuse(c, "unexpected argument %q; every value belongs to a flag", args[0])
}

// input is the body of a call: what --json says, the flags on top of it, and an
// idempotency key where none is given.
func (p *program) input(c *cobra.Command, m cli.Method, values map[string]*value, whole string) (*node, error) {
	body := newObject()
	if c.Flags().Changed("json") {
		var err error
		if body, err = p.readJSON(whole); err != nil {
			return nil, misuse(c, "--json: %v", err)
		}
	}
	for _, f := range m.Fields {
		if v := values[f.Path]; v != nil && v.given != nil {
			body.set(strings.Split(f.Path, "."), v.given)
		}
	}
	var missing []string
	for _, f := range m.Fields {
		switch {
		case !f.Required || body.at(f.Path) != nil:
		case f.Path == idempotencyPath:
			body.set([]string{f.Path}, stringNode(rand.Text()))
		case strings.Contains(f.Path, ".") && body.at(parentOf(f.Path)) == nil:
			// the object around it is missing, which is said there or is allowed
		default:
			missing = append(missing, required(m, f))
		}
	}
	if len(missing) > 0 {
		return nil, misuse(c, "%s", strings.Join(missing, "\n"))
	}
	return body, nil
}

func parentOf(path string) string { return path[:strings.LastIndexByte(path, '.')] }

// required says which flag is missing and what it takes.
func required(m cli.Method, f cli.Field) string {
	if f.Flag != "" {
		return strings.TrimSuffix(fmt.Sprintf("--%s is required: %s", f.Flag, f.Limits), ": ")
	}
	var flags []string
	for _, inner := range m.Fields {
		if inner.Flag != "" && strings.HasPrefix(inner.Path, f.Path+".") {
			flags = append(flags, "--"+inner.Flag)
		}
	}
	return "one of these is required: " + strings.Join(flags, ", ")
}

// dial makes the client that the flags and the environment describe.
func (p *program) dial(c *cobra.Command) (*client.Client, error) {
	server := p.server
	if server == "" {
		server = p.getenv(envServer)
	}
	if server == "" {
		server = defaultServer
	}
	trust, err := p.trust()
	if err != nil {
		return nil, misuse(c, "%v", err)
	}
	options := slices.Concat([]client.Option{client.WithUserAgent("bcctl/" + version())}, trust, p.client)
	sdk, err := client.New(server, options...)
	if err != nil {
		return nil, misuse(c, "%v", err)
	}
	key, from, err := p.key()
	if err != nil {
		return nil, misuse(c, "%v", err)
	}
	if key == "" {
		return sdk, nil
	}
	p.hasKey = true
	if sdk, err = client.New(server, append(options, client.WithKey(key))...); err != nil {
		return nil, misuse(c, "%v (from %s)", err, from)
	}
	return sdk, nil
}

// A call is a method on its way.
type call struct {
	*program
	sdk    *client.Client
	group  cli.Group
	method cli.Method
	body   *node
	revoke func(id string) string // the command that ends a record, or nil
}

// one calls once and shows the answer.
func (c *call) one(ctx context.Context) error {
	answer, err := c.sdk.Call(ctx, c.method.ID, c.body.bytes())
	if answer == nil {
		return err
	}
	if wrong := c.show(answer); wrong != nil {
		return c.unwritten(answer, wrong)
	}
	if lost, ok := err.(*client.LostAnswerError); ok {
		return &lostError{lost, c.revoke}
	}
	return err
}

// unwritten says that an answer came and did not reach its reader.
func (c *call) unwritten(answer []byte, err error) error {
	err = fmt.Errorf("the call was done, but its answer could not be written: %w", err)
	if c.method.Once == nil {
		return &refusal{err}
	}
	c.say("%v", err)
	id := ""
	if root, wrong := parseJSON(answer); wrong == nil {
		id = root.at(c.method.Once.Record + ".id").plain()
	}
	return &lostError{&client.LostAnswerError{Operation: c.method.ID, ID: id, Revoke: c.method.Once.Revoke}, c.revoke}
}

package ctl

import (
	"context"
	"errors"
	"fmt"
)

// all calls until the last page and shows the pages as one answer.
func (c *call) all(ctx context.Context) error {
	out := c.newList()
	page := c.method.Page
	for last := ""; ; {
		answer, err := c.sdk.Call(ctx, c.method.ID, c.body.bytes())
		if err != nil {
			return err
		}
		root, err := parseJSON(answer)
		if err != nil {
			return err
		}
		items := root.at(c.method.Output.Member).children()
		if err := out.add(items); err != nil {
			return c.unwritten(answer, err)
		}
		next := root.at(page.Next)
		if next == nil || page.Always && next.text == last {
			if err := out.end(next); err != nil {
				return c.unwritten(answer, err)
			}
			return nil
		}
		if next.text == last {
			return &refusal{fmt.Errorf("the server gave the same %s twice", page.Next)}
		}
		last = next.text
		c.body.set([]string{page.Ask}, next)
	}
}

// stream shows records as they come, until ctx ends.
func (c *call) stream(ctx context.Context) error {
	out := c.newLines()
	for data, err := range c.sdk.Stream(ctx, c.method.ID, c.body.bytes()) {
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return nil
			}
			return err
		}
		record, err := parseJSON(data)
		if err != nil {
			return &refusal{fmt.Errorf("the stream holds what is no JSON: %w", err)}
		}
		if err := out.add([]*node{record}); err != nil {
			return c.unwritten(data, err)
		}
	}
	return nil
}

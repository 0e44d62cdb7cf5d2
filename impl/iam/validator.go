package iam

import (
	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
)

// A validator holds policies against a schema, strictly. The library calls
// this part of itself experimental; all that touches it stands in this file.
type validator struct{ strict *validate.Validator }

func newValidator(text []byte) (*validator, error) {
	var parsed schema.Schema
	if err := parsed.UnmarshalCedar(text); err != nil {
		return nil, err
	}
	resolved, err := parsed.Resolve()
	if err != nil {
		return nil, err
	}
	return &validator{validate.New(resolved, validate.WithStrict())}, nil
}

func (v *validator) policy(id string, p *cedar.Policy) error {
	return v.strict.Policy(id, (*ast.Policy)(p.AST()))
}

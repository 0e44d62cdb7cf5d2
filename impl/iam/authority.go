package iam

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cedar-policy/cedar-go"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/policy"
)

// A Resource is what a call is decided on, with what policies may ask of it.
type Resource struct {
	Type      api.ResourceType
	Owner     string // the tenant
	ID        string // within its owner; of a tenant, the tenant itself
	SiteOwner string // of a pool
	Agent     string // of a pool
	Custom    bool   // of a site
}

// String names the resource, such as compute-pool/acme/lab.
func (r Resource) String() string {
	if r.Type == api.Tenant {
		return string(r.Type) + "/" + r.ID
	}
	return string(r.Type) + "/" + r.Owner + "/" + r.ID
}

// A Decision says whether an action is allowed and which policies allow it, in the order of their ids.
type Decision struct {
	Allowed  bool
	Policies []string
}

// An Authority decides by the built-in roles and an operator's policies. It is
// immutable and safe for concurrent use.
type Authority struct{ policies *cedar.PolicySet }

// NewAuthority loads the built-in policies and, unless policyDir is empty, the
// *.cedar files in it. Every policy is held against the schema; one that
// forbids is refused, because Cedar skips a forbid that fails to evaluate.
func NewAuthority(policyDir string) (*Authority, error) {
	check, err := newValidator(policy.Schema)
	if err != nil {
		return nil, fmt.Errorf("the built-in policy schema: %w", err)
	}
	a := &Authority{cedar.NewPolicySet()}
	if err := a.add("roles.cedar", policy.Cedar, check); err != nil {
		return nil, fmt.Errorf("the built-in roles: %w", err)
	}
	if policyDir == "" {
		return a, nil
	}
	files, err := os.ReadDir(policyDir)
	if err != nil {
		return nil, fmt.Errorf("the policy folder cannot be read: %w", err)
	}
	for _, entry := range files {
		file := filepath.Join(policyDir, entry.Name())
		if filepath.Ext(file) != ".cedar" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("the policy file cannot be read: %w", err)
		}
		if err := a.add(file, text, check); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// add takes in the policies of one file. A policy is known by its @id or, for
// want of one, by its file and place.
func (a *Authority) add(file string, text []byte, check *validator) error {
	list, err := cedar.NewPolicyListFromBytes(file, text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for i, p := range list {
		id := fmt.Sprintf("%s#%d", filepath.Base(file), i+1)
		if name, ok := p.Annotations()["id"]; ok {
			id = string(name)
		}
		line := p.Position().Line
		if p.Effect() != cedar.Permit {
			return fmt.Errorf("%s:%d: policy %s forbids; only permit is allowed, with the condition stated positively", file, line, id)
		}
		if err := check.policy(id, p); err != nil {
			return fmt.Errorf("%s:%d: policy %s: %w", file, line, id, err)
		}
		if !a.policies.Add(cedar.PolicyID(id), p) {
			return fmt.Errorf("%s:%d: there is another policy with the id %s", file, line, id)
		}
	}
	return nil
}

// errPolicy is for the log: a policy that fails denies.
var errPolicy = errors.New("iam: a policy could not be evaluated")

// Decide says whether a principal may do an action on a resource. A policy
// that cannot be evaluated denies, whatever the others say; the error is then
// not nil and is for the log.
func (a *Authority) Decide(p Principal, action string, r Resource) (Decision, error) {
	request, entities := question(p, action, r)
	verdict, diagnostic := a.policies.IsAuthorized(entities, request)
	if len(diagnostic.Errors) > 0 {
		return Decision{}, fmt.Errorf("%w: %s: %s", errPolicy, diagnostic.Errors[0].PolicyID, diagnostic.Errors[0].Message)
	}
	d := Decision{Allowed: verdict == cedar.Allow}
	for _, reason := range diagnostic.Reasons {
		d.Policies = append(d.Policies, string(reason.PolicyID))
	}
	slices.Sort(d.Policies)
	return d, nil
}

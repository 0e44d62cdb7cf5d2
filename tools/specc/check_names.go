package main

import "slices"

// reserved are names that generated packages have whatever the pages say.
var reserved = []string{
	// the OpenAPI documents
	"Problem", "ProblemReason", "Violation", "ViolationRule",
	// api
	"Method", "Methods", "Retry", "RetryKey", "RetryNatural", "RetryNone",
	"Replay", "ReplayNever", "ReplayBeforeDecision", "ReplayAfterDecision",
	"Credential", "CredentialAPIKey", "CredentialJoinToken", "CredentialNodeCertificate", "Resource", "ResourceType", "ComputePool", "ComputeSite", "Tenant", "Groups",
	// api, by oapi-codegen
	"Handler", "HandlerFromMux", "HandlerFromMuxWithBaseURL", "HandlerWithOptions", "InvalidParamFormatError", "MiddlewareFunc",
	"NewStrictHandler", "NewStrictHandlerWithOptions", "RequiredHeaderError", "RequiredParamError", "ServeMux", "ServerInterface",
	"ServerInterfaceWrapper", "StdHTTPServerOptions", "StrictHTTPServerOptions", "StrictHandlerFunc", "StrictMiddlewareFunc",
	"StrictServerInterface", "TooManyValuesForParamError", "UnescapedCookieParamError", "UnmarshalingParamError",
	// client
	"Client", "Error", "IsCode", "LostAnswerError", "New", "Option", "UnansweredError",
	"WithHTTP", "WithKey", "WithRetries", "WithUserAgent",
	// client, by oapi-codegen
	"ClientInterface", "ClientOption", "HTTPClient", "HttpRequestDoer", "NewClient", "RequestEditorFn", "WithHTTPClient", "WithRequestEditorFn",
	// events
	"Payload", "Types",
}

// names refuses two things that would become the same name in generated code.
// TypeScript takes over the names of Go; those of Python are held apart per table.
func (c *checker) names() {
	n := &namer{c.wrong, map[string]string{}}
	for _, name := range reserved {
		n.taken[name] = "what specc writes by itself"
	}
	for _, s := range c.scalars {
		n.claim(s.at, goName(s.name), "the type "+s.name)
		if s.kind == kindEnum {
			for _, value := range s.limit.enum {
				n.claim(s.at, goName(s.name)+goName(value), "the value "+value+" of "+s.name)
			}
		}
	}
	for _, r := range c.records {
		n.object(r.at, goName(r.name), "the type "+r.name, r.fields)
	}
	for _, e := range c.spec.events {
		n.object(e.at, goName(e.name), "the event "+e.name, e.fields)
	}
	for _, g := range c.groups {
		n.claim(g.at, goName(g.name), "the group "+g.name)
		calls := &namer{c.wrong, map[string]string{}}
		for _, m := range g.methods {
			n.claim(m.at, goName(m.operation()), "the method "+m.id())
			n.object(m.at, goName(m.operation())+"Input", "the input of "+m.id(), m.input)
			n.object(m.at, goName(m.operation())+"Output", "the output of "+m.id(), m.output)
			calls.claim(m.at, goName(m.name), "the method "+m.id())
			if m.replay != "" {
				calls.claim(m.at, "Replay"+goName(m.name), "the replay of "+m.id())
			}
		}
	}
	problems := &namer{c.wrong, map[string]string{"Code": "what specc writes by itself", "Reason": "what specc writes by itself"}}
	for _, o := range c.codes {
		problems.claim(o.at, goConstant(o.name), "the code "+o.name)
	}
	for _, r := range c.rules {
		problems.claim(r.at, "Rule"+goName(r.name), "the rule "+r.name)
	}
	for _, r := range c.reasons {
		problems.claim(r.at, "Reason"+goName(r.name), "the reason "+r.name)
	}
}

// A namer knows what has which name in one package.
type namer struct {
	wrong *mistakes
	taken map[string]string
}

func (n *namer) claim(at position, name, what string) {
	if other, twice := n.taken[name]; twice {
		n.wrong.add(at, "%s and %s become the same name %s in Go; rename one", other, what, name)
		return
	}
	n.taken[name] = what
}

// object claims a name for an object and further ones for what is written inside it.
func (n *namer) object(at position, name, what string, fields []*field) {
	n.claim(at, name, what)
	for _, f := range fields {
		switch {
		case len(f.fields) > 0:
			n.object(f.at, f.typeName(name), "the object "+f.path, f.fields)
		case f.scalar == nil && slices.Contains([]kind{f.kind, f.element}, kindEnum):
			n.claim(f.at, name+goName(f.name), "the list of "+f.path)
		}
	}
}

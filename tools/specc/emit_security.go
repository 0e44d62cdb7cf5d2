package main

import "slices"

// A scheme is a security scheme of the documents.
type scheme struct {
	decides credential
	name    string
	with    object
}

var schemes = []scheme{
	{byAction, "apiKey", object{
		{"type", "http"}, {"scheme", "bearer"},
		{"description", "An API key in its bearer form `bck_<id>.<secret>`."},
	}},
	{byToken, "joinToken", object{
		{"type", "http"}, {"scheme", "bearer"},
		{"description", "A join token in its bearer form `bcjt_<id>.<secret>`."},
	}},
	{byNode, "nodeCertificate", object{
		{"type", "mutualTLS"},
		{"description", "The client certificate of a node."},
	}},
}

// securitySchemes are those that some method needs. That of the document as a
// whole is always there. Before 3.1 there is no word for client certificates.
func (d *documentWriter) securitySchemes() object {
	all := object{}
	for _, s := range schemes {
		if s.decides == byAction || d.uses(s.decides) && d.knows(s.decides) {
			all = all.with(s.name, s.with)
		}
	}
	return all
}

// uses says that some method is decided so.
func (s *spec) uses(c credential) bool {
	return slices.ContainsFunc(s.groups, func(g *group) bool {
		return slices.ContainsFunc(g.methods, func(m *method) bool { return m.decides == c })
	})
}

func (d *documentWriter) knows(c credential) bool { return c != byNode || d.version >= "3.1" }

// security is what an operation needs that is not decided on an action.
func (d *documentWriter) security(c credential) []any {
	if !d.knows(c) {
		return []any{}
	}
	s, _ := find(schemes, func(s scheme) bool { return s.decides == c })
	return []any{object{{s.name, []any{}}}}
}

// description is the prose of a method, and what security cannot say.
func (d *documentWriter) description(m *method) string {
	if d.knows(m.decides) {
		return m.prose
	}
	return m.prose + "\n\nThe call needs a client certificate: that of the node that calls."
}

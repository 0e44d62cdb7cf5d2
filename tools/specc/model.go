package main

// A spec is everything that the pages declare.
type spec struct {
	groups  []*group // in the order of their names
	scalars []*scalar
	records []*record
	events  []*event
	codes   []*code
	rules   []*rule
	reasons []*reason
	roles   []*role
	grants  []*grant
	machine *machine // nil without provision.md
}

// A group is one page of methods.
type group struct {
	name    string // joinTokens
	at      position
	prose   string
	methods []*method
}

// A method is one row of a group's table and the section that describes it.
type method struct {
	group     *group
	name      string // create
	at        position
	described bool        // it has a section
	row       methodFacts // as the group's table has it
	facts     methodFacts // as the section's bullets have it
	summary   string      // the first sentence of the prose
	prose     string
	path      string

	kind    string // mutation or read
	phase   string // v0.1
	module  string // server
	retry   string // key, natural or none
	replay  string // "", before or after (the decision)
	denial  string // hidden or shown
	decides credential
	action  string // compute:join-tokens:create
	targets []target
	also    []also
	stream  *stream
	other   *otherStatus
	columns []cell // of a list: what its rows show

	input   []*field
	output  []*field
	errors  []caseOf
	events  []caseOf
	request example
	answer  example
}

// methodFacts are those facts that stand both in a group's table and in a method's bullets.
type methodFacts struct{ kind, authorization, phase, status cell }

// A credential is what a call is decided on: as the authorization says it, or
// "" for an action.
type credential string

const (
	byAction credential = ""     // what the bearer, an API key, may do
	byToken  credential = "none" // the join token that is the bearer, without IAM
	byNode   credential = "self" // the node whose client certificate was presented, without IAM
)

// An otherStatus is the status of an answer in which an optional field is there.
type otherStatus struct {
	status int
	when   string
	at     position
}

// A target is the one resource that a method is decided on: the first whose id is in the input.
type target struct {
	kind  string // compute-pool
	id    string // the input field that holds the id: poolId
	owner string // the input field that holds the owner tenant: tenantId
	at    position
}

// An also is a further action that must be allowed when a boolean of the input is true.
type also struct {
	action, when string
	at           position
}

// A stream says that the answer is a stream of records of one type; the field
// named after is the position that a client resumes from.
type stream struct {
	record *record
	after  string
}

// A caseOf is a row of a method's errors or events.
type caseOf struct {
	name cell
	when string
}

// An example is the JSON of a request or an answer.
type example struct {
	text string
	at   position // of the first line of the JSON
}

// A scalar is a named string with its limits, declared once in types.md.
type scalar struct {
	name  string
	at    position
	kind  kind
	limit limits
	notes string
}

// A record is a named object that answers and events are made of.
type record struct {
	name   string
	at     position
	prose  string
	fields []*field
}

// An event is something that is published, with its data.
type event struct {
	name   string // security.join-token.created
	at     position
	prose  string
	fields []*field
}

// A code is an error code and its HTTP status.
type code struct {
	name   string
	at     position
	status int
	title  string
	retry  bool
	when   string
}

// A rule is what errors[].rule can say.
type rule struct {
	name    string
	at      position
	meaning string
}

// A reason is what a problem's reason can say beside one code.
type reason struct {
	name    string // hardware_mismatch
	at      position
	code    cell
	meaning string
}

// A role is what an API key may do.
type role struct {
	name     string
	at       position
	tenant   string // "any", or the only tenant that can have it
	pool     bool   // a key with it may be limited to a pool
	mayGrant []cell
}

// A grant is an action and, for each role, on whose things: any, own, site, pool or "".
type grant struct {
	action string
	at     position
	scopes []string // as the roles stand
}

// operation is the name of a method in OpenAPI and in Go: joinTokensCreate.
func (m *method) operation() string { return m.group.name + capitalize(m.name) }

// id is the name of a method in prose: joinTokens.create.
func (m *method) id() string { return m.group.name + "." + m.name }

func find[T any](list []T, is func(T) bool) (found T, ok bool) {
	for _, item := range list {
		if is(item) {
			return item, true
		}
	}
	return found, false
}

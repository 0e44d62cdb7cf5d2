package strictjson

import (
	"strconv"
	"strings"
)

// Rule names what a violation is a violation of. The names are part of the
// contract: a caller may branch on them.
type Rule string

// Every rule there is. RulePattern and RuleLength are checked by generated code and
// reported through Decoder.Fail; the others are checked here.
const (
	RuleJSON       Rule = "json"         // the body is not well-formed JSON
	RuleEmpty      Rule = "empty"        // the body is empty or blank
	RuleEncoding   Rule = "encoding"     // invalid UTF-8, lone surrogate, NUL, raw control character, byte order mark
	RuleTrailing   Rule = "trailing"     // something follows the document
	RuleDuplicate  Rule = "duplicate"    // a member is given twice
	RuleUnknown    Rule = "unknown"      // a member is not a field
	RuleRequired   Rule = "required"     // a field is missing
	RuleNull       Rule = "null"         // a value is null
	RuleType       Rule = "type"         // a value has the wrong JSON type
	RulePattern    Rule = "pattern"      // a string does not match
	RuleLength     Rule = "length"       // a string has too few or too many code points
	RuleRange      Rule = "range"        // a number is too small or too large
	RuleInteger    Rule = "integer"      // a number is not whole
	RuleEnum       Rule = "enum"         // a string is not one of those allowed
	RuleItems      Rule = "items"        // an array has too few or too many items
	RuleAtLeastOne Rule = "at-least-one" // an object has none of its fields
	RuleDepth      Rule = "depth"        // a value nests too deep
)

// Violation is one reason to refuse a body.
type Violation struct {
	// Field is the path of the value: "maxUses", "expect.mac", "macs[3]"; "" is the
	// body as a whole. Of a name longer than 64 characters only 32 are shown, and what
	// is not printable is shown as U+FFFD.
	Field string
	// Rule is what was violated.
	Rule Rule
	// Message says in half a sentence what would be right. It never holds a value.
	Message string
}

// Violations is the error of a refused body: at least one Violation, 64 at most,
// in the order in which they were met.
type Violations []Violation

// shown is how many violations Error spells out.
const shown = 3

// Error lists the first three: "maxUses: must be 1-10000 (range); … and 2 more".
func (v Violations) Error() string {
	var b strings.Builder
	for i, violation := range v[:min(len(v), shown)] {
		if i > 0 {
			b.WriteString("; ")
		}
		if violation.Field != "" {
			b.WriteString(violation.Field + ": ")
		}
		b.WriteString(violation.Message + " (" + string(violation.Rule) + ")")
	}
	if more := len(v) - shown; more > 0 {
		b.WriteString("; and " + strconv.Itoa(more) + " more")
	}
	return b.String()
}

// Package strictjson decodes one JSON document from a string into generated
// types, refuses everything the contract does not allow, and says where.
package strictjson

import (
	"strconv"
	"strings"
)

// Mode says how much of a refused document is reported.
type Mode uint8

const (
	// All reports every independent violation, 64 at most.
	All Mode = iota
	// First stops the decode at the first violation.
	First
)

// maxDepth is the deepest nesting of objects and arrays; the body itself is level 1.
const maxDepth = 16

// maxViolations bounds the report on a hostile body; the decode stops there.
const maxViolations = 64

// bom is U+FEFF in UTF-8, which RFC 8259 forbids in front of a document.
const bom = "\xEF\xBB\xBF"

// Decoder scans one document from front to back. Generated code asks it for the
// value it expects next; a value that is refused is recorded, skipped and answered
// with the zero value, so the caller never branches on errors and asks End for the
// outcome. At most one violation is recorded for a value: once a value is refused,
// further complaints about it are dropped. It is a value meant for the stack, used
// by one goroutine, once.
type Decoder struct {
	body    string
	name    string // current member, unescaped
	pos     int    // next unread byte; between calls it stands on a value, or just after one
	depth   int    // open objects and arrays
	count   int    // items of the array closed last
	mode    Mode
	refused bool // the current value has its violation
	dead    bool // nothing more is read or reported; pos == len(body)
	found   Violations
	// marks[k] is where the open container of level k stands: the offset of its
	// current member's name, or for an array ^index. A path is built from it only
	// when there is something to report.
	marks [maxDepth + 1]int
}

// NewDecoder starts on body, which must not change afterwards: decoded strings
// are slices of it wherever they hold no escape.
func NewDecoder(body string, mode Mode) Decoder {
	d := Decoder{body: body, mode: mode}
	d.lead()
	return d
}

// lead passes what may stand in front of the document, and refuses a byte order mark.
func (d *Decoder) lead() {
	if strings.HasPrefix(d.body, bom) {
		d.pos = len(bom)
		d.add("", RuleEncoding, "must not start with a byte order mark")
	}
	if !d.dead {
		d.pos = space(d.body, d.pos)
	}
}

// End reports the outcome: nil if the document was accepted, else Violations in
// the order in which they were met. It refuses anything but white space after the
// document (RuleTrailing). Call it once, after the top-level value was decoded.
func (d *Decoder) End() error {
	if !d.dead {
		if i := space(d.body, d.pos); i < len(d.body) {
			d.add("", RuleTrailing, "must end after one JSON value")
		}
	}
	if len(d.found) == 0 {
		return nil
	}
	return d.found
}

// Fail records a violation of the current value: the one decoded last, or the
// object or array closed last. It does nothing if that value is already refused,
// so generated code may check a pattern without asking whether decoding went well.
func (d *Decoder) Fail(rule Rule, message string) {
	if d.refused || d.dead {
		return
	}
	d.add(d.path(), rule, message)
	d.refused = true
}

// refuse records one violation for the value at pos and reads over it, whatever
// it is.
func (d *Decoder) refuse(rule Rule, message string) {
	end, fault := skip(d.body, d.pos, d.depth)
	if fault == badJSON {
		d.Fail(rule, message)
		d.malformed(end)
		return
	}
	d.settle(end, fault, rule, message)
}

// refuseType refuses the value at pos because it is not what message asks for.
// What is no JSON value at all has no type either, and is only malformed.
func (d *Decoder) refuseType(message string) {
	if d.dead {
		return
	}
	if d.pos == len(d.body) && d.depth == 0 {
		d.add("", RuleEmpty, "must hold a JSON object")
		d.stop()
		return
	}
	end, fault := skip(d.body, d.pos, d.depth)
	switch {
	case fault == badJSON:
		d.malformed(end)
	case peek(d.body, d.pos) == 'n':
		d.settle(end, fault, RuleNull, "must not be null")
	default:
		d.settle(end, fault, RuleType, message)
	}
}

// settle records the violation of a value that ends at end. One that nests too
// deep is refused for that instead, and ends the decode.
func (d *Decoder) settle(end int, fault fault, rule Rule, message string) {
	if fault == tooDeep {
		d.Fail(RuleDepth, "must not nest deeper than "+strconv.Itoa(maxDepth)+" levels")
		d.stop()
		return
	}
	d.Fail(rule, message)
	if !d.dead {
		d.pos = end
	}
}

// malformed records that the body stops being JSON at offset i, and ends the
// decode: nothing behind that point can be trusted to mean anything.
func (d *Decoder) malformed(i int) {
	if d.dead {
		return
	}
	message := "malformed JSON: the body ends too early"
	if i < len(d.body) {
		message = "malformed JSON at byte " + strconv.Itoa(i)
	}
	d.add("", RuleJSON, message)
	d.stop()
}

// add appends a violation and stops the decode if that was enough of them.
func (d *Decoder) add(field string, rule Rule, message string) {
	if d.dead {
		return
	}
	d.found = append(d.found, Violation{field, rule, message})
	if d.mode == First || len(d.found) == maxViolations {
		d.stop()
	}
}

// stop ends the decode. With the position at the end, every loop of the caller
// finds nothing more to read; the fast paths need not ask whether we are dead.
func (d *Decoder) stop() {
	d.dead = true
	d.pos = len(d.body)
}

// peek returns the byte at i, or 0 past the end: a byte no JSON token starts with.
func peek(s string, i int) byte {
	if uint(i) < uint(len(s)) {
		return s[i]
	}
	return 0
}

// space returns the offset of the first byte from i on that is not white space.
func space(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

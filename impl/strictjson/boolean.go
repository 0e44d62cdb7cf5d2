package strictjson

import "strings"

// Boolean decodes true or false. It refuses any other value (RuleType, RuleNull)
// and then returns false.
func (d *Decoder) Boolean() bool {
	rest := d.body[d.pos:]
	if strings.HasPrefix(rest, "true") {
		d.pos += len("true")
		return true
	}
	if strings.HasPrefix(rest, "false") {
		d.pos += len("false")
		return false
	}
	d.refuseType("must be true or false")
	return false
}

package strictjson

// Class is a set of bytes: what one place of a pattern may hold.
type Class [256]bool

// ClassOf returns the class that ranges describes as between the brackets of a
// regular expression: "0-9A-Fa-f-". A hyphen at either end is itself, and there are
// no escapes. It panics on a range that runs backwards and on anything beyond ASCII.
func ClassOf(ranges string) Class {
	var c Class
	for i := 0; i < len(ranges); i++ {
		low, high := ranges[i], ranges[i]
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			high = ranges[i+2]
			i += 2
		}
		if low > high || high >= 0x80 {
			panic("strictjson: bad class " + ranges)
		}
		for b := int(low); b <= int(high); b++ {
			c[b] = true
		}
	}
	return c
}

// All reports whether every byte of s is in the class. Most of validating a body is
// spent here, hence four bytes a turn.
func (c *Class) All(s string) bool {
	for len(s) >= 4 {
		if !c[s[0]] || !c[s[1]] || !c[s[2]] || !c[s[3]] {
			return false
		}
		s = s[4:]
	}
	for i := range len(s) {
		if !c[s[i]] {
			return false
		}
	}
	return true
}

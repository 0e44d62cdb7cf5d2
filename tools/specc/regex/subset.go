package regex

import "slices"

// Subset reports whether b accepts every text that a accepts. If not, witness is
// a shortest text that a accepts and b refuses. The answer is exact; time and
// memory grow with the pairs of states that one text can reach, which for
// ordinary patterns are few but are at most the product of both state counts.
func Subset(a, b *DFA) (witness string, ok bool) {
	type pair struct{ a, b uint16 }
	type visit struct {
		at   pair
		from int  // index of the visit before
		by   byte // the byte that led here
	}
	start := pair{uint16(a.start), uint16(b.start)}
	seen := map[pair]bool{start: true}
	visits := []visit{{at: start}}
	letters := tellingApart(a, b)
	for i := 0; i < len(visits); i++ {
		at := visits[i].at
		if a.accepting[at.a] && !b.accepting[at.b] {
			var text []byte
			for ; i > 0; i = visits[i].from {
				text = append(text, visits[i].by)
			}
			slices.Reverse(text)
			return string(text), false
		}
		for _, letter := range letters {
			next := pair{a.step(at.a, letter), b.step(at.b, letter)}
			if next.a != dead && !seen[next] {
				seen[next] = true
				visits = append(visits, visit{next, i, letter})
			}
		}
	}
	return "", true
}

// tellingApart returns one byte for each class of bytes that a and b both treat alike.
func tellingApart(a, b *DFA) []byte {
	var letters []byte
	seen := map[[2]uint8]bool{}
	for _, letter := range readable() {
		classes := [2]uint8{a.classOf[letter], b.classOf[letter]}
		if !seen[classes] {
			seen[classes] = true
			letters = append(letters, letter)
		}
	}
	return letters
}

// readable returns all bytes, those first that show best in a message.
func readable() []byte {
	order := make([]byte, 0, 256)
	var seen [256]bool
	for _, s := range []span{{'a', 'z'}, {'0', '9'}, {'A', 'Z'}, {'!', '~'}, {0, 255}} {
		for b := int(s.lo); b <= int(s.hi); b++ {
			if !seen[b] {
				seen[b] = true
				order = append(order, byte(b))
			}
		}
	}
	return order
}

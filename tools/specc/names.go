package main

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// initialisms are written in capitals in Go. Those that oapi-codegen does not
// know by itself are passed to it, so that both write the same names.
var (
	initialisms = []string{
		"ACL", "API", "ASCII", "CPU", "CSS", "DNS", "EOF", "GUID", "HTML", "HTTP", "HTTPS", "ID", "IP", "JSON",
		"QPS", "RAM", "RPC", "SLA", "SMTP", "SQL", "SSH", "TCP", "TLS", "TTL", "UDP", "UI", "GID", "UID", "UUID",
		"URI", "URL", "UTF8", "VM", "XML", "XMPP", "XSRF", "XSS", "SIP", "RTP", "AMQP", "DB", "TS",
	}
	additionalInitialisms = []string{"GPU", "BMC", "CSR", "MAC"}
)

// words splits a name at dots, dashes, underscores, capitals and behind digits,
// as oapi-codegen does: ttlSeconds → ttl, seconds; ipv4range → ipv4, range.
func words(name string) []string {
	var list []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			list = append(list, strings.ToLower(word.String()))
			word.Reset()
		}
	}
	before := ' '
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
		case unicode.IsUpper(r), unicode.IsDigit(before) && !unicode.IsDigit(r):
			flush()
			word.WriteRune(r)
		default:
			word.WriteRune(r)
		}
		before = r
	}
	flush()
	return list
}

// goName is the exported Go name: gpuUuid → GPUUUID, join-token → JoinToken.
func goName(name string) string {
	var out strings.Builder
	for _, word := range words(name) {
		if upper := strings.ToUpper(word); slices.Contains(initialisms, upper) || slices.Contains(additionalInitialisms, upper) {
			out.WriteString(upper)
		} else {
			out.WriteString(capitalize(word))
		}
	}
	return out.String()
}

// goConstant is goName for a name in capitals: INVALID_INPUT → InvalidInput.
func goConstant(name string) string { return goName(strings.ToLower(name)) }

// kebab is the name on the command line: joinTokens → join-tokens.
func kebab(name string) string { return strings.Join(words(name), "-") }

func capitalize(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

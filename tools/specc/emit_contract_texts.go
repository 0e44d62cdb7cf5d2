package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// quoted is a text as a JSON string.
func quoted(text string) string {
	raw, _ := plainJSON(text) // a string is always encoded
	return string(raw)
}

// escapes is a text with every character as an escape.
func escapes(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			continue
		}
		fmt.Fprintf(&out, `\u%04x`, r)
	}
	return out.String()
}

// dirtyTexts are strings that are no proper text, whatever a field allows.
func dirtyTexts(valid string) []trial {
	inside := quoted(valid)
	inside = inside[1 : len(inside)-1]
	var list []trial
	for _, t := range []struct{ what, text, rule string }{
		{"high surrogate alone", inside + `\ud800`, "encoding"},
		{"low surrogate alone", `\udc00` + inside, "encoding"},
		{"surrogates in reverse", `\udc00\ud800`, "encoding"},
		{"high surrogate before a letter", `\ud800a`, "encoding"},
		{"escaped NUL", inside + `\u0000`, "encoding"},
		{"raw NUL", inside + "\x00", "encoding"},
		{"raw control character", inside + "\x01", "encoding"},
		{"raw newline", inside + "\n", "encoding"},
		{"raw tab", "\t" + inside, "encoding"},
		{"a byte that is not UTF-8", inside + "\xff", "encoding"},
		{"overlong UTF-8", inside + "\xc0\xaf", "encoding"},
		{"a surrogate in UTF-8", "\xed\xa0\x80" + inside, "encoding"},
		{"UTF-8 that is cut", inside + "\xe2\x82", "encoding"},
		{"UTF-8 beyond U+10FFFF", "\xf4\x90\x80\x80", "encoding"},
		{"unknown escape", inside + `\x41`, "json"},
		{"escape that is cut", inside + `\u00`, "json"},
		{"escape that is not hexadecimal", inside + `\u00g1`, "json"},
	} {
		list = append(list, trial{what: t.what, raw: `"` + t.text + `"`, rule: t.rule})
	}
	return list
}

// textTrials are strings at every edge of a pattern and a length.
func textTrials(limit *limits) (list []trial) {
	judge := func(what, text, raw string) {
		t := trial{what: what, raw: raw}
		switch {
		case limit.maxChars > 0 && utf8.RuneCountInString(text) > limit.maxChars:
			t.rule = "length"
		case limit.pattern != nil && !limit.pattern.DFA().Match(text):
			t.rule = "pattern"
		}
		list = append(list, t)
	}
	text := func(what, text string) { judge(what, text, quoted(text)) }
	if limit.pattern != nil {
		for i, s := range limit.pattern.DFA().Accepts() {
			text(fmt.Sprintf("matches %d", i+1), s)
		}
		for i, s := range limit.pattern.DFA().Rejects() {
			text(fmt.Sprintf("does not match %d", i+1), s)
		}
		for _, length := range []int{limit.maxChars, limit.maxChars + 1} {
			if s, ok := matchOfLength(limit.pattern.DFA(), length); ok {
				text(fmt.Sprintf("matches with %d characters", length), s)
			}
		}
	}
	valid := validText(limit)
	text("empty", "")
	text("valid", valid)
	text("trailing newline", valid+"\n")
	text("trailing carriage return", valid+"\r\n")
	text("leading blank", " "+valid)
	text("trailing blank", valid+" ")
	text("beyond ASCII", valid+"\u00e9")
	text("look-alike", "\u0430"+valid)
	text("full-width digit", valid+"\uff11")
	text("delete", valid+"\x7f")
	text("byte order mark", "\ufeff"+valid)
	judge("escapes", valid, `"`+escapes(valid)+`"`)
	judge("escapes in capitals", valid, `"`+strings.ReplaceAll(strings.ToUpper(escapes(valid)), `\U`, `\u`)+`"`)
	judge("escaped slash", valid+"/", strings.ReplaceAll(quoted(valid+"/"), "/", `\/`))
	judge("pair of surrogates", "\U0001f600", `"\ud83d\ude00"`)
	if limit.maxChars > 0 && limit.maxChars < maxBody/2 {
		text("as many characters as can be", strings.Repeat("a", limit.maxChars))
		text("too many characters", strings.Repeat("a", limit.maxChars+1))
		text("as many characters as can be, beyond ASCII", strings.Repeat("\u00e9", limit.maxChars))
		text("too many characters, beyond ASCII", strings.Repeat("\u00e9", limit.maxChars+1))
	}
	return append(list, dirtyTexts(valid)...)
}

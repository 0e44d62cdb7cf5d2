package strictjson_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/strictjson"
)

func TestClassOf(t *testing.T) {
	t.Parallel()
	for _, ranges := range []string{"0-9A-Fa-f-", "A-Za-z0-9._:-", "A-Za-z0-9._:/+-", "A-Za-z0-9._~:/+=-", "-a", "a-", "a-a", "0-9a-hjkmnp-tv-z", "+--", "x"} {
		class := strictjson.ClassOf(ranges)
		want := regexp.MustCompile("^[" + ranges + "]$")
		for b := range 256 {
			if s := string([]byte{byte(b)}); class.All(s) != (b < 0x80 && want.MatchString(s)) {
				t.Errorf("[%s] of %q is %t", ranges, s, class.All(s))
			}
		}
	}
}

func TestClassAll(t *testing.T) {
	t.Parallel()
	class := strictjson.ClassOf("a-z")
	for n := range 20 {
		s := strings.Repeat("m", n)
		if !class.All(s) {
			t.Errorf("%q is refused", s)
		}
		for i := range n {
			if bad := s[:i] + "-" + s[i+1:]; class.All(bad) {
				t.Errorf("%q is accepted", bad)
			}
		}
	}
}

func TestClassOfPanics(t *testing.T) {
	t.Parallel()
	for _, ranges := range []string{"z-a", "é", "a-\x80"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is accepted", ranges)
				}
			}()
			strictjson.ClassOf(ranges)
		}()
	}
}

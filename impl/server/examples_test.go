package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// exampleOrder is a life in which every example of the spec holds: what is
// made before it is read, and read before it is changed. From then on it is five
// minutes later, as in the examples.
var exampleOrder = []string{
	"sitesCreate", "sitesGet", "sitesList",
	"poolsCreate", "poolsGet", "poolsList",
	"apiKeysCreate", "apiKeysList",
	"joinTokensCreate", "joinTokensList",
	"eventsList", "eventsWatch",
	later, "poolsUpdate", "joinTokensRevoke", "apiKeysRevoke",
}

const later = "five minutes later"

// TestExamples_OfTheSpec sends the example request of every method and
// compares the answer with the example response: all of it, but that ids are
// known by their kind and a bearer by its form.
func TestExamples_OfTheSpec(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		nine := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
		s.clock.Set(nine)
		ops := s.key(t, "acme/ops", "tenant-admin")
		byID := map[string]operation{}
		for _, op := range operations(t) {
			byID[op.id] = op
		}
		known := examples{ids: map[string]string{}}
		for _, id := range exampleOrder {
			if id == later {
				s.clock.Set(nine.Add(5 * time.Minute))
				continue
			}
			op, ok := byID[id]
			if !ok {
				t.Errorf("there is no operation %s", id)
				continue
			}
			delete(byID, id)
			s.position(t)
			request := s.request(t, ops, "", known.fill(op.request))
			request.URL.Path = op.path
			if len(op.response) == 0 {
				stream := s.open(t, request)
				if event := stream.next(t); event.name != "compute.pool.created" || event.id != known.ids["ev_2"] {
					t.Errorf("%s: the first message is %+v", id, event)
				}
				stream.close()
				continue
			}
			var got, want any
			if err := json.Unmarshal(as[json.RawMessage](t, s.do(t, request)), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(op.response, &want); err != nil {
				t.Fatal(err)
			}
			if keys, ok := got.(map[string]any)["apiKeys"].([]any); ok {
				// The examples leave out the key that they are called with.
				got.(map[string]any)["apiKeys"] = slices.DeleteFunc(keys, func(key any) bool { return key.(map[string]any)["identity"] == "ops" })
			}
			for _, difference := range known.compare("", got, want) {
				t.Errorf("%s: %s", id, difference)
			}
		}
		for id := range byID {
			t.Errorf("the example of %s is not executed", id)
		}
	})
}

// examples compares answers with those of the spec, whose ids are made up.
type examples struct{ ids map[string]string } // made up → real

var (
	madeUp    = regexp.MustCompile(`^(jt|ak|evt|ev)_[0-9a-z]+$`)
	anyMadeUp = regexp.MustCompile(`"(jt|ak|evt|ev)_[0-9a-z]+"`)
	anyBearer = regexp.MustCompile(`^(bcjt_jt|bck_ak)_[0-9a-hjkmnp-tv-z]{52}\.[0-9A-Za-z]{49}$`)
)

// fill puts the real ids into an example request.
func (e examples) fill(request []byte) []byte {
	return anyMadeUp.ReplaceAllFunc(request, func(id []byte) []byte {
		if real, ok := e.ids[strings.Trim(string(id), `"`)]; ok {
			return []byte(`"` + real + `"`)
		}
		return id
	})
}

// compare lists the differences between an answer and its example.
func (e examples) compare(at string, got, want any) []string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok || !slices.Equal(slices.Sorted(maps.Keys(object)), slices.Sorted(maps.Keys(want))) {
			return []string{fmt.Sprintf("%s has members %v, the example %v", at, slices.Sorted(maps.Keys(object)), slices.Sorted(maps.Keys(want)))}
		}
		var differences []string
		for name := range want {
			differences = append(differences, e.compare(at+"."+name, object[name], want[name])...)
		}
		return differences
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return []string{fmt.Sprintf("%s is %v, the example %v", at, got, want)}
		}
		var differences []string
		for i := range want {
			differences = append(differences, e.compare(fmt.Sprintf("%s[%d]", at, i), list[i], want[i])...)
		}
		return differences
	case string:
		text, ok := got.(string)
		if ok && e.same(text, want) {
			return nil
		}
	default:
		if got == want {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s is %v, the example %v", at, got, want)}
}

func (e examples) same(got, want string) bool {
	if want == "[sealed]" {
		return anyBearer.MatchString(got)
	}
	kind := madeUp.FindStringSubmatch(want)
	if kind == nil {
		return got == want
	}
	if real, ok := e.ids[want]; ok {
		return got == real
	}
	e.ids[want] = got
	return strings.HasPrefix(got, kind[1]+"_") && madeUp.MatchString(got)
}

// TestExamples_AreCompared holds that a wrong answer would be noticed.
func TestExamples_AreCompared(t *testing.T) {
	t.Parallel()
	want := `{"a": {"id": "jt_00", "list": [1, true]}, "cursor": "jt_00", "key": "[sealed]"}`
	for _, wrong := range []string{
		`{"a": {"id": "jt_01", "list": [1, true]}, "cursor": "jt_02", "key": "[sealed]"}`, `[]`, `{"a": {"id": "jt_01", "list": [1, true]}, "cursor": "jt_01"}`,
		`{"a": {"id": "ak_01", "list": [1, true]}, "cursor": "ak_01", "key": "bcjt_jt_` + strings.Repeat("0", 52) + "." + strings.Repeat("0", 49) + `"}`,
		`{"a": {"id": "jt_01", "list": [1, false]}, "cursor": "jt_01", "key": "bcjt_jt_` + strings.Repeat("0", 52) + "." + strings.Repeat("0", 49) + `"}`,
		`{"a": {"id": "jt_01", "list": [1, true]}, "cursor": "jt_02", "key": "bcjt_jt_` + strings.Repeat("0", 52) + "." + strings.Repeat("0", 49) + `"}`,
	} {
		var x, y any
		if json.Unmarshal([]byte(wrong), &x) != nil || json.Unmarshal([]byte(want), &y) != nil {
			t.Fatal("JSON")
		}
		if len(examples{map[string]string{}}.compare("", x, y)) == 0 {
			t.Errorf("taken for equal: %s", wrong)
		}
	}
}

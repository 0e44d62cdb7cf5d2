package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/contract"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// specDir is the spec that gen is generated from.
const specDir = "../../spec"

// TestContract runs every case of the corpus through the generated decoders.
func TestContract(t *testing.T) {
	t.Parallel()
	methods := methodsOf(t, specDir)
	names := map[string]bool{}
	for _, c := range contract.Cases() {
		names[c.Name] = true
		m := methods[c.Operation]
		if m == nil || m.path != c.Path {
			t.Fatalf("%s: no method %s at %s", c.Name, c.Operation, c.Path)
		}
		body := string(c.Bytes())
		if c.Status == 413 {
			if len(body) <= maxBody {
				t.Errorf("%s: %d bytes are not too many", c.Name, len(body))
			}
			continue
		}
		if len(body) > maxBody {
			t.Errorf("%s: %d bytes are too many", c.Name, len(body))
		}
		if problem := judge(m, c, body); problem != "" {
			t.Errorf("%s: %s\nbody %q", c.Name, problem, body)
		}
	}
	for id := range methods {
		if !names[id+"//example"] {
			t.Errorf("the corpus has no case for %s", id)
		}
	}
}

// judge says how the decoder of a method differs from a case, or "".
func judge(m *method, c contract.Case, body string) string {
	for _, mode := range []strictjson.Mode{strictjson.All, strictjson.First} {
		in, err := contract.Decode(c.Operation, body, mode)
		var found strictjson.Violations
		switch {
		case err != nil && !errors.As(err, &found):
			return err.Error()
		case c.Accept && err != nil:
			return "is refused: " + err.Error()
		case c.Accept:
			if problem := sameInput(in, m.input, []byte(body)); problem != "" {
				return problem
			}
			continue
		case err == nil:
			return fmt.Sprintf("is accepted; it breaks the rule %s of %q", c.Rule, c.Field)
		case len(found) != 1 || found[0].Field != c.Field || string(found[0].Rule) != c.Rule:
			return fmt.Sprintf("is refused for %v; only %q breaks the rule %s", found, c.Field, c.Rule)
		case c.Code != "INVALID_INPUT" || c.Status != 400:
			return fmt.Sprintf("is refused as %s with %d", c.Code, c.Status)
		}
	}
	return ""
}

// sameInput holds a decoded input against encoding/json's reading of the body and
// the table, and says where they differ, or "".
func sameInput(in any, fields []*field, body []byte) string {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	var says map[string]any
	if err := decoder.Decode(&says); err != nil {
		return "encoding/json refuses it: " + err.Error()
	}
	return sameObject(reflect.ValueOf(in).Elem(), fields, says)
}

func sameObject(is reflect.Value, fields []*field, says map[string]any) string {
	for _, f := range fields {
		value := is.FieldByName(goName(f.name))
		if !value.IsValid() {
			return "has no field " + f.path
		}
		said, given := says[f.name]
		if isOptional := value.Kind() == reflect.Struct && value.FieldByName("Set").IsValid() && value.NumField() == 2; isOptional {
			if value.FieldByName("Set").Bool() != given {
				return fmt.Sprintf("%s: set is %t", f.path, !given)
			}
			value = value.FieldByName("Value")
		}
		if problem := sameValue(value, f, f.kind, said, given); problem != "" {
			return problem
		}
	}
	return ""
}

func sameValue(is reflect.Value, f *field, k kind, said any, given bool) string {
	want := any(nil)
	switch {
	case k == kindObject:
		inside, _ := said.(map[string]any)
		if !given && !f.defaulted() && !f.required {
			return sameZero(is, f)
		}
		return sameObject(is, f.fields, inside)
	case k == kindArray:
		items, _ := said.([]any)
		if is.Len() != len(items) {
			return fmt.Sprintf("%s has %d items, not %d", f.path, is.Len(), len(items))
		}
		for i, item := range items {
			if problem := sameValue(is.Index(i), f, f.element, item, true); problem != "" {
				return problem
			}
		}
		return ""
	case !given && !f.limit.hasDefault:
		return sameZero(is, f)
	case !given && k == kindInteger:
		said = json.Number(f.limit.deflt)
	case !given && k == kindBoolean:
		said = f.limit.deflt == "true"
	case !given:
		said = f.limit.deflt
	}
	switch k {
	case kindInteger:
		n, _ := new(big.Rat).SetString(said.(json.Number).String())
		want = n.Num().Int64()
	default:
		want = said
	}
	if got := plain(is); got != want {
		return fmt.Sprintf("%s is %v, not %v", f.path, got, want)
	}
	return ""
}

func sameZero(is reflect.Value, f *field) string {
	if !is.IsZero() {
		return fmt.Sprintf("%s is %v though it is not given", f.path, is)
	}
	return ""
}

func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Int64:
		return v.Int()
	default:
		return v.Interface()
	}
}

// TestContractIsComplete holds the corpus against what every field must have.
func TestContractIsComplete(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{specDir, "testdata/good"} {
		w := &contractWriter{spec: parsed(t, dir)}
		for _, g := range w.spec.groups {
			for _, m := range g.methods {
				w.operation(m)
			}
		}
		rules := map[string]map[string]bool{} // operation/field → rules of its refusals, "" for an accepted one
		names := map[string]bool{}
		for _, c := range w.cases {
			if names[c.Name] {
				t.Errorf("two cases are named %s", c.Name)
			}
			names[c.Name] = true
			parts := strings.SplitN(c.Name, "/", 3)
			key := parts[0] + "/" + parts[1]
			if rules[key] == nil {
				rules[key] = map[string]bool{}
			}
			rules[key][c.Rule] = true
		}
		for _, g := range w.spec.groups {
			for _, m := range g.methods {
				walk(m.input, func(f *field) {
					want := append(rulesOf(f), "", "null", "type", "json", "duplicate", "unknown", "depth")
					if f.required {
						want = append(want, "required")
					}
					for _, rule := range want {
						if !rules[m.id()+"/"+f.path][rule] {
							t.Errorf("%s/%s has no case of the rule %q; it has %v", m.id(), f.path, rule, slices.Sorted(maps.Keys(rules[m.id()+"/"+f.path])))
						}
					}
				})
			}
		}
	}
}

// rulesOf are the rules that values of a field can break.
func rulesOf(f *field) []string {
	switch f.kind {
	case kindString:
		if f.limit.pattern == nil {
			return []string{"encoding", "length"}
		}
		return []string{"encoding", "length", "pattern"}
	case kindEnum:
		return []string{"encoding", "enum"}
	case kindInteger:
		return []string{"range", "integer"}
	case kindObject:
		if f.limit.atLeastOne {
			return []string{"at-least-one"}
		}
		return nil
	case kindArray:
		return append(rulesOf(elementOf(f)), "items")
	}
	return nil
}

// TestContractSize keeps the corpus small enough to be read by every SDK's tests.
func TestContractSize(t *testing.T) {
	t.Parallel()
	info, err := os.Stat("../../gen/contract/corpus.json")
	if err != nil {
		t.Fatal(err)
	}
	if methods := methodsOf(t, specDir); info.Size() > int64(len(methods))*100<<10 {
		t.Errorf("the corpus has %d bytes for %d methods", info.Size(), len(methods))
	}
}

// parsed is the spec of a folder, which must be without mistakes.
func parsed(t testing.TB, dir string) *spec {
	t.Helper()
	pages, err := readPages(dir)
	if err != nil {
		t.Fatal(err)
	}
	wrong := &mistakes{}
	s := parseSpec(pages, wrong)
	for _, m := range wrong.sorted() {
		t.Errorf("%s: %s", m.at, m.text)
	}
	if t.Failed() {
		t.FailNow()
	}
	return s
}

func methodsOf(t testing.TB, dir string) map[string]*method {
	t.Helper()
	methods := map[string]*method{}
	for _, g := range parsed(t, dir).groups {
		for _, m := range g.methods {
			methods[m.id()] = m
		}
	}
	return methods
}

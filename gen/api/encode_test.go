package api

import (
	"encoding/json"
	"math/rand"
	"net/http/httptest"
	"reflect"
	"testing"
	"testing/quick"
	"time"
)

// outputs are the types that the methods of all groups answer with.
func outputs() (list []reflect.Type) {
	groups := reflect.TypeFor[Groups]()
	for i := range groups.NumField() {
		group := groups.Field(i).Type
		for j := range group.NumMethod() {
			if out := group.Method(j).Type.Out(0); out.Implements(reflect.TypeFor[answer]()) {
				list = append(list, out.Elem())
			}
		}
	}
	return list
}

// TestEncoders holds that every answer, whatever is in it, becomes the JSON
// that encoding/json would make of it.
func TestEncoders(t *testing.T) {
	t.Parallel()
	types := outputs()
	if len(types) == 0 {
		t.Fatal("no method answers")
	}
	random := rand.New(rand.NewSource(1))
	for _, output := range types {
		for range 50 {
			value := reflect.New(output)
			fill(value.Elem(), random)
			ours := value.Interface().(answer).appendJSON(nil)
			theirs, err := json.Marshal(value.Interface())
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.Unmarshal(ours, &got); err != nil {
				t.Fatalf("%s: %v: %s", output, err, ours)
			}
			if err := json.Unmarshal(theirs, &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s became\n%s and encoding/json makes\n%s", output, ours, theirs)
			}
		}
	}
}

// fill puts anything into a value: half of the pointers stay nil.
func fill(v reflect.Value, random *rand.Rand) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMicro(random.Int63n(1 << 50)).UTC()))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"a": ["b", 1]}`)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), random)
		}
	case reflect.Pointer:
		if random.Intn(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), random)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), random.Intn(4), 4))
		for i := range v.Len() {
			fill(v.Index(i), random)
		}
	default:
		value, _ := quick.Value(v.Type(), random)
		v.Set(value)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if err := (&SitesGetOutput{}).VisitSitesGetResponse(w); err != nil {
		t.Fatal(err)
	}
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || !json.Valid(w.Body.Bytes()) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

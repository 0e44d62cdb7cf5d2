package strictjson_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// sample has a field of every shape a table in spec/ can declare.
type sample struct {
	Name  string // required, ^[a-z0-9]{1,8}$
	Title strictjson.Optional[string]
	Count int64 // 1-10000, default 7
	Level int64 // -5 to 5
	Wide  int64
	On    bool
	Kind  string // disk or net
	Part  strictjson.Optional[part]
	MACs  []string // 1-3 items, each ^[a-z0-9]{1,8}$
	Racks []rack
}

type part struct{ Serial, MAC string } // at least one

type rack struct{ Slot int64 } // required

var (
	className   = strictjson.ClassOf("a-z0-9")
	sampleNames = []string{"name", "title", "count", "level", "wide", "on", "kind", "part", "macs", "racks"}
	partNames   = []string{"serial", "mac"}
	rackNames   = []string{"slot"}
	kinds       = []string{"disk", "net"}
)

func matchName(s string) bool { return len(s) >= 1 && len(s) <= 8 && className.All(s) }

func name(d *strictjson.Decoder) string {
	s := d.String()
	if !matchName(s) {
		d.Fail(strictjson.RulePattern, "must match ^[a-z0-9]{1,8}$")
	}
	return s
}

func (in *sample) decode(d *strictjson.Decoder) {
	in.Count = 7
	var seen uint64
	for more := d.Open(); more; more = d.Next() {
		switch d.Name() {
		case "name":
			d.Field(&seen, 0)
			in.Name = name(d)
		case "title":
			d.Field(&seen, 1)
			in.Title = strictjson.Some(d.String())
		case "count":
			d.Field(&seen, 2)
			in.Count = d.Integer(1, 10000)
		case "level":
			d.Field(&seen, 3)
			in.Level = d.Integer(-5, 5)
		case "wide":
			d.Field(&seen, 4)
			in.Wide = d.Integer(-1<<63, 1<<63-1)
		case "on":
			d.Field(&seen, 5)
			in.On = d.Boolean()
		case "kind":
			d.Field(&seen, 6)
			in.Kind = d.OneOf(kinds)
		case "part":
			d.Field(&seen, 7)
			in.Part.Set = true
			in.Part.Value.decode(d)
		case "macs":
			d.Field(&seen, 8)
			for more := d.OpenArray(); more; more = d.NextItem() {
				in.MACs = append(in.MACs, name(d))
			}
			d.Items(1, 3)
		case "racks":
			d.Field(&seen, 9)
			for more := d.OpenArray(); more; more = d.NextItem() {
				var r rack
				r.decode(d)
				in.Racks = append(in.Racks, r)
			}
		default:
			d.Unknown(sampleNames)
		}
	}
	d.Require(seen, 1, sampleNames)
}

func (in *part) decode(d *strictjson.Decoder) {
	var seen uint64
	for more := d.Open(); more; more = d.Next() {
		switch d.Name() {
		case "serial":
			d.Field(&seen, 0)
			in.Serial = d.String()
		case "mac":
			d.Field(&seen, 1)
			in.MAC = name(d)
		default:
			d.Unknown(partNames)
		}
	}
	d.AtLeastOne(seen)
}

func (in *rack) decode(d *strictjson.Decoder) {
	var seen uint64
	for more := d.Open(); more; more = d.Next() {
		switch d.Name() {
		case "slot":
			d.Field(&seen, 0)
			in.Slot = d.Integer(0, 48)
		default:
			d.Unknown(rackNames)
		}
	}
	d.Require(seen, 1, rackNames)
}

func decodeSample(body string, mode strictjson.Mode) (sample, error) {
	var in sample
	d := strictjson.NewDecoder(body, mode)
	in.decode(&d)
	return in, d.End()
}

// violations returns what err reports, nil for nil.
func violations(t testing.TB, err error) strictjson.Violations {
	t.Helper()
	var found strictjson.Violations
	if err != nil && (!errors.As(err, &found) || len(found) == 0) {
		t.Fatalf("error is %T with %d violations", err, len(found))
	}
	return found
}

// brief writes violations as "field rule", one after another, the body as "-".
func brief(found strictjson.Violations) string {
	var parts []string
	for _, v := range found {
		field := v.Field
		if field == "" {
			field = "-"
		}
		parts = append(parts, field+" "+string(v.Rule))
	}
	return strings.Join(parts, ", ")
}

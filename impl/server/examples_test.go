package server_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/impl/csr"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// exampleOrder is a life in which every example of the spec holds: what is
// made before it is read, and read before it is changed. A time of the day lets
// the clock go on to it.
var exampleOrder = []string{
	"sitesCreate", "sitesGet", "sitesList",
	"poolsCreate", "poolsGet", "poolsList",
	"apiKeysCreate", "apiKeysList",
	"joinTokensCreate", "joinTokensList",
	"eventsList", "eventsWatch",
	"inventoryImport", "inventoryList",
	aTokenForMachines, "nodesJoin", aMachineWaits,
	"09:00:01", "nodesConfirm",
	"09:01:00", aMachineWaits, aMachineWaits, "joinRequestsList", "joinRequestsGet",
	"09:02:00", "joinRequestsApprove",
	"09:04:30", "nodesReport", "nodesGet", "nodesList",
	"09:05:00", "nodesBan", "nodesUnban", "joinRequestsDeny", "inventoryRemove",
	"poolsUpdate", "joinTokensRevoke", "apiKeysRevoke",
	"25:00:00", "nodesRenew",
	"25:05:00", "nodesRemove",
}

// What happens between the examples.
const (
	aTokenForMachines = "a token for machines"
	aMachineWaits     = "a machine waits"
)

// A life is one that the examples tell of.
type life struct {
	*running
	known   examples
	ops     string // a key
	token   string // of the machines
	machine machine
	waiting machine
	node    *http.Client // that shows the certificate of machine
}

// TestExamples_OfTheSpec sends the example request of every method and
// compares the answer with the example response: all of it, but that ids are
// known by their kind, a bearer by its form, and a certificate as one.
func TestExamples_OfTheSpec(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := startTLS(t, kind, clockAt(midnight.Add(9*time.Hour)), func(s *setup) {
			s.config.JoinLimits.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		})
		l := &life{running: s, known: examples{ids: map[string]string{}}, ops: s.key(t, "acme/ops", "tenant-admin"), machine: newMachine(t, nil), waiting: nobody(t)}
		byID := map[string]operation{}
		for _, op := range operations(t) {
			byID[op.id] = op
		}
		for _, id := range exampleOrder {
			var h, m, sec int
			if n, _ := fmt.Sscanf(id, "%d:%d:%d", &h, &m, &sec); n == 3 {
				s.clock.Set(midnight.Add(time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(sec)*time.Second))
				continue
			}
			op, ok := byID[id]
			switch {
			case id == aTokenForMachines:
				l.mintForMachines(t)
			case id == aMachineWaits:
				l.wait(t)
			case ok:
				l.live(t, op)
				delete(byID, id)
			default:
				t.Errorf("there is no operation %s", id)
			}
		}
		for id := range byID {
			t.Errorf("the example of %s is not executed", id)
		}
	})
}

// The examples' token of machines and, as they know it, its id.
const machinesToken = "jt_4c7h2m9q1s8v3x6z0b5d7f2h4k6n8q1s3v5x7z9b2d4f6h8k0n1q"

func (l *life) mintForMachines(t *testing.T) {
	t.Helper()
	l.token, l.known.ids[machinesToken] = l.bearerOf(t, l.ops, nil)
}

// wait calls as the machine of the join request does.
func (l *life) wait(t *testing.T) {
	t.Helper()
	request := l.request(t, l.token, "nodes.join", l.waiting.body())
	request.Header.Set("X-Forwarded-For", "192.0.2.7")
	a := l.do(t, request)
	if a.status != http.StatusAccepted {
		t.Fatalf("the machine need not wait: %d %s", a.status, a.body)
	}
	parsed, err := csr.Parse(l.waiting.csr)
	if err != nil {
		t.Fatal(err)
	}
	l.known.ids["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"] = parsed.Fingerprint
}

// live executes an example.
func (l *life) live(t *testing.T, op operation) {
	t.Helper()
	l.position(t)
	client, key := l.client, l.ops
	switch op.id {
	case "nodesJoin":
		key = l.token
	case "nodesConfirm", "nodesReport", "nodesRenew":
		client, key = l.node, ""
	}
	request := l.request(t, key, "", l.asOurs(t, op))
	request.URL.Path = op.path
	if len(op.response) == 0 {
		stream := l.open(t, request)
		if event := stream.next(t); event.name != "compute.pool.created" || event.id != l.known.ids["ev_2"] {
			t.Errorf("%s: the first message is %+v", op.id, event)
		}
		stream.close()
		return
	}
	a := l.by(t, client, request)
	var got, want any
	if err := json.Unmarshal(as[json.RawMessage](t, a), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(op.response, &want); err != nil {
		t.Fatal(err)
	}
	if keys, ok := got.(map[string]any)["apiKeys"].([]any); ok {
		// The examples leave out the key that they are called with.
		got.(map[string]any)["apiKeys"] = slices.DeleteFunc(keys, func(key any) bool { return key.(map[string]any)["identity"] == "ops" })
	}
	for _, difference := range l.known.compare("", got, want) {
		t.Errorf("%s: %s", op.id, difference)
	}
	if op.id == "nodesJoin" {
		var out api.NodesJoinOutput
		if err := json.Unmarshal(a.body, &out); err != nil || out.Admitted == nil {
			t.Fatalf("the machine is not admitted: %v", err)
		}
		l.node = l.showing(t, pairOf(t, out.Admitted.Certificate, l.machine.key))
	}
}

// asOurs is the example request with a certificate request whose key is here,
// in place of one that is good, but whose key nobody has.
func (l *life) asOurs(t *testing.T, op operation) any {
	t.Helper()
	request := l.known.fill(op.request)
	var body object
	if err := json.Unmarshal(request, &body); err != nil {
		t.Fatal(err)
	}
	example, has := body["csr"].(string)
	if !has {
		return request
	}
	if _, err := csr.Parse(example); err != nil {
		t.Errorf("%s: %v", op.id, err)
	}
	if body["csr"] = l.machine.csr; op.id == "nodesRenew" {
		body["csr"] = newMachine(t, nil).csr
	}
	return body
}

// examples compares answers with those of the spec, whose ids are made up.
type examples struct{ ids map[string]string } // made up → real

const pemStart = "-----BEGIN CERTIFICATE-----\n"

var (
	madeUp    = regexp.MustCompile(`^(jt_|ak_|evt_|ev_|nd_|jr_)[0-9a-z]+$|^[0-9a-f]{32}$|^[0-9a-f]{64}$`)
	anyMadeUp = regexp.MustCompile(`"((jt|ak|evt|ev|nd|jr)_[0-9a-z]+|[0-9a-f]{64})"`)
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
	if strings.HasPrefix(want, pemStart) {
		block, _ := pem.Decode([]byte(got))
		return block != nil && strings.HasPrefix(got, pemStart)
	}
	kind := madeUp.FindStringSubmatch(want)
	if kind == nil {
		return got == want
	}
	if real, ok := e.ids[want]; ok {
		return got == real
	}
	e.ids[want] = got
	form := madeUp.FindStringSubmatch(got)
	return form != nil && form[1] == kind[1] && (kind[1] != "" || len(got) == len(want))
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
	short, long, pem := strings.Repeat("0", 32), strings.Repeat("0", 64), pemStart+"MIIB\n-----END CERTIFICATE-----\n"
	for want, others := range map[string][]string{
		"jt_00": {"jr_00", "jt_", "", short}, short: {long, short[1:], short[1:] + "x", "jt_00", pem}, long: {short, pem}, pem: {"", "x" + pem, pemStart, short},
	} {
		for _, got := range others {
			if (examples{map[string]string{}}).same(got, want) {
				t.Errorf("taken for equal: %q and %q", got, want)
			}
		}
	}
}

package attest_test

import (
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
)

type sample struct {
	Kind, Value string
	VMs         bool `yaml:"vms"`
}

// fields are the names that the spec has for the kinds of a corpus.
var fields = map[string]string{"serial": "serial", "product-uuid": "productUuid", "mac": "mac", "gpu-uuid": "gpuUuid"}

func corpus(t testing.TB) (read struct {
	Bogus map[string][]sample
	Real  []sample
}) {
	t.Helper()
	text, err := os.ReadFile("../placeholder/testdata/corpus.yaml")
	must(t, err)
	must(t, yaml.Unmarshal(text, &read))
	return read
}

// TestPlaceholders_BogusTellNothing holds that every bogus value of the corpus
// tells no machine, and that the rule which says so is named: at least 80 of them.
func TestPlaceholders_BogusTellNothing(t *testing.T) {
	t.Parallel()
	list, named := placeholder.Default(), 0
	for rule, samples := range corpus(t).Bogus {
		for _, s := range samples {
			field := fields[s.Kind]
			got := attest.Judge(list, claimsWith(t, field, s.Value), s.VMs)
			if len(got.Tells) > 0 {
				t.Errorf("%+v tells a machine: %v", s, got.Tells)
			}
			if s.Value == "" { // is no claim
				continue
			}
			named++
			if want := []store.PlaceholderMatch{{Field: field, Value: s.Value, Rule: rule}}; !slices.Equal(got.Placeholders, want) {
				t.Errorf("%+v: %v, want %v", s, got.Placeholders, want)
			}
		}
	}
	if named < 80 {
		t.Errorf("%d bogus values have a rule id, want at least 80", named)
	}
}

// TestPlaceholders_OddButRealTell holds that odd values of real machines are
// left alone: at least 40 of them.
func TestPlaceholders_OddButRealTell(t *testing.T) {
	t.Parallel()
	list, alone := placeholder.Default(), 0
	for _, s := range corpus(t).Real {
		got := attest.Judge(list, claimsWith(t, fields[s.Kind], s.Value), s.VMs)
		want := []store.Identifier{{Kind: fields[s.Kind], Value: placeholder.Normalize(placeholder.Kind(s.Kind), s.Value)}}
		if len(got.Placeholders) > 0 || !slices.Equal(got.Tells, want) {
			t.Errorf("%+v: %+v, want %v", s, got, want)
		}
		alone++
	}
	if alone < 40 {
		t.Errorf("%d real values are left alone, want at least 40", alone)
	}
}

// TestJudge_SortsOutWhatTells holds that tells are in normal form, sorted and
// each once, and that placeholders stand beside them as they were presented.
func TestJudge_SortsOutWhatTells(t *testing.T) {
	t.Parallel()
	got := attest.Judge(placeholder.Default(), store.Claims{
		ProductUUID: "{4C4C4544-0042-3510-8052-B3C04F4B4E32}", Serial: " To be filled by O.E.M. ",
		MACs:     []string{"3C-EC-EF-12-34-57", "00:00:00:00:00:00", "3c:ec:ef:12:34:56", "3C:EC:EF:12:34:56", "02:00:00:00:00:07"},
		GPUUUIDs: []string{"GPU-8F6B1C2D-03E4-4B5A-9C7D-1E2F3A4B5C6D"}, Hostname: "rack7", Environment: "kubernetes",
	}, false)
	tells := []store.Identifier{{Kind: "gpuUuid", Value: gpu}, {Kind: "mac", Value: mac}, {Kind: "mac", Value: mac2}, {Kind: "productUuid", Value: uuid}}
	if !slices.Equal(got.Tells, tells) {
		t.Errorf("%v, want %v", got.Tells, tells)
	}
	var bogus []string
	for _, p := range got.Placeholders {
		if p.Rule == "" {
			t.Errorf("%+v names no rule", p)
		}
		bogus = append(bogus, p.Field+"="+p.Value)
	}
	if want := []string{"serial= To be filled by O.E.M. ", "mac=00:00:00:00:00:00", "mac=02:00:00:00:00:07"}; !slices.Equal(bogus, want) {
		t.Errorf("%q, want %q", bogus, want)
	}
}

// TestJudge_VirtualMachines holds that a pool decides whether addresses of
// virtual machines tell, and that hostname and environment never do.
func TestJudge_VirtualMachines(t *testing.T) {
	t.Parallel()
	c := store.Claims{MACs: []string{"52:54:00:ab:cd:ef"}, Hostname: "rack7-u12", Environment: "host"}
	if got := attest.Judge(placeholder.Default(), c, false); len(got.Tells) != 0 || len(got.Placeholders) != 1 {
		t.Errorf("a local address tells in a pool without virtual machines: %+v", got)
	}
	if got := attest.Judge(placeholder.Default(), c, true); len(got.Tells) != 1 || len(got.Placeholders) != 0 {
		t.Errorf("a local address does not tell in a pool with virtual machines: %+v", got)
	}
}

// TestJudge_MalformedUUID holds that a product UUID that is none tells no
// machine: nobody could swap its fields, and so find it again.
func TestJudge_MalformedUUID(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"4c4c4544", uuid[:35], uuid + "0", "CZ2D1X0QTP", "4c4c4544-0042-3510-8052-b3c04f4b4e3g"} {
		got := attest.Judge(placeholder.Default(), store.Claims{ProductUUID: value}, false)
		want := []store.PlaceholderMatch{{Field: "productUuid", Value: value, Rule: attest.MalformedRule}}
		if len(got.Tells) != 0 || !slices.Equal(got.Placeholders, want) {
			t.Errorf("%q: %+v", value, got)
		}
	}
}

// TestNJ_5_LooksFor holds that others are looked for by all that tells a
// machine, and by its product UUID with the fields swapped.
func TestNJ_5_LooksFor(t *testing.T) {
	t.Parallel()
	m := attest.Judge(placeholder.Default(), store.Claims{ProductUUID: uuid, Serial: "CZ2D1X0QTP"}, false)
	want := append(slices.Clone(m.Tells), store.Identifier{Kind: "productUuid", Value: swapped})
	if got := m.LooksFor(); !slices.Equal(got, want) || len(m.Tells) != 2 {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNJ_5_SharedValuesTellNobody holds that a value that two nodes have
// presented counts for neither, and that the machine's other values still do.
func TestNJ_5_SharedValuesTellNobody(t *testing.T) {
	t.Parallel()
	serial, address := store.Identifier{Kind: "serial", Value: "cz2d1x0qtp"}, store.Identifier{Kind: "mac", Value: mac}
	m := attest.Machine{Tells: []store.Identifier{address, serial}, Placeholders: []store.PlaceholderMatch{{Field: "mac", Value: "x", Rule: "y"}}}
	holdings := []store.Holding{
		{Identifier: address, Shared: true, Node: store.Node{ID: "nd_1"}},
		{Identifier: address, Shared: true, Node: store.Node{ID: "nd_2"}},
		{Identifier: serial, Node: store.Node{ID: "nd_3"}},
	}
	left, held := m.WithoutShared(holdings)
	if !slices.Equal(left.Tells, []store.Identifier{serial}) || len(held) != 1 || held[0].Node.ID != "nd_3" {
		t.Errorf("%v, held %v", left.Tells, held)
	}
	if want := (store.PlaceholderMatch{Field: "mac", Value: mac, Rule: "shared"}); len(left.Placeholders) != 2 || left.Placeholders[1] != want {
		t.Errorf("%v, want %v at the end", left.Placeholders, want)
	}
	if len(m.Tells) != 2 || len(m.Placeholders) != 1 || len(holdings) != 3 {
		t.Error("what was judged has changed")
	}
}

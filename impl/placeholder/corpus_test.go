package placeholder

import (
	_ "embed"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

//go:embed testdata/corpus.yaml
var corpusFile []byte

type sample struct {
	Kind  Kind
	Value string
	VMs   bool `yaml:"vms"`
}

func (s sample) String() string { return fmt.Sprintf("%s %q vms=%t", s.Kind, s.Value, s.VMs) }

func (s sample) options() []Option {
	if s.VMs {
		return []Option{VirtualMachines}
	}
	return nil
}

type corpus struct {
	Bogus map[string][]sample
	Real  []sample
}

func readCorpus(t testing.TB) corpus {
	t.Helper()
	var c corpus
	if err := yaml.Unmarshal(corpusFile, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCorpusBogus(t *testing.T) {
	t.Parallel()
	l, n := Default(), 0
	for rule, samples := range readCorpus(t).Bogus {
		for _, s := range samples {
			n++
			if got, bogus := l.Match(s.Kind, s.Value, s.options()...); got != rule || !bogus {
				t.Errorf("%v: Match = %q, %t; want %q, true", s, got, bogus, rule)
			}
		}
	}
	if n < 80 {
		t.Errorf("%d bogus values, the corpus promises at least 80", n)
	}
}

func TestCorpusReal(t *testing.T) {
	t.Parallel()
	l, samples := Default(), readCorpus(t).Real
	for _, s := range samples {
		if got, bogus := l.Match(s.Kind, s.Value, s.options()...); bogus || got != "" {
			t.Errorf("%v: Match = %q, %t; want it left alone", s, got, bogus)
		}
	}
	if len(samples) < 40 {
		t.Errorf("%d real values, the corpus promises at least 40", len(samples))
	}
}

// Each rule is exercised, has a reason, and is not hidden behind an earlier one; its values are known, not hoped for.
func TestEveryRule(t *testing.T) {
	t.Parallel()
	l, c := Default(), readCorpus(t)
	for kind, rules := range l.rules {
		for _, r := range rules {
			if len(c.Bogus[r.id]) == 0 {
				t.Errorf("%s has no value in the corpus", r.id)
			}
			if l.Why(r.id) == "" {
				t.Errorf("%s has no reason", r.id)
			}
			for value := range r.exact {
				if got, _ := l.Match(kind, value); got != r.id {
					t.Errorf("%s %q falls under %q, not under %s", kind, value, got, r.id)
				}
			}
		}
	}
}

func TestVirtualMachinesLiftsOnlyTheLocalBit(t *testing.T) {
	t.Parallel()
	for kind, rules := range Default().rules {
		for _, r := range rules {
			if (r.unless == VirtualMachines) != (r.id == "mac-local") {
				t.Errorf("%s rule %s: unless %q", kind, r.id, r.unless)
			}
		}
	}
}

func TestSwappedUUIDsFallUnderTheSameRule(t *testing.T) {
	t.Parallel()
	l := Default()
	for rule, samples := range readCorpus(t).Bogus {
		for _, s := range samples {
			if s.Kind != ProductUUID {
				continue
			}
			if got, _ := l.Match(s.Kind, SwapUUID(s.Value)); got != rule {
				t.Errorf("%v swapped to %s: Match = %q, want %q", s, SwapUUID(s.Value), got, rule)
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	l, c := Default(), readCorpus(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for rule, samples := range c.Bogus {
				if !slices.ContainsFunc(samples, func(s sample) bool {
					got, _ := l.Match(s.Kind, s.Value, s.options()...)
					return got == rule
				}) {
					t.Errorf("%s matched nothing", rule)
				}
			}
		})
	}
	wg.Wait()
}

func TestUnknownKindAndRule(t *testing.T) {
	t.Parallel()
	l := Default()
	if rule, bogus := l.Match("asset-tag", ""); bogus {
		t.Errorf("an unknown kind fell under %q", rule)
	}
	if why := l.Why("no-such-rule"); why != "" {
		t.Errorf("an unknown rule has the reason %q", why)
	}
}

package seal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/bettercompute/bettercompute/impl/seal"
)

const record = "ca_issuers/iss_0123456789abcdefghjkmnpqrs"

// fresh returns keys, a keyset that they wrapped, and its box.
func fresh(t testing.TB) (seal.Keys, []byte, *seal.Box) {
	t.Helper()
	keys := parse(t, seal.NewKeyText())
	wrapped, err := seal.NewKeyset(keys)
	if err != nil {
		t.Fatal(err)
	}
	return keys, wrapped, open(t, keys, wrapped)
}

func open(t testing.TB, keys seal.Keys, wrapped []byte) *seal.Box {
	t.Helper()
	box, err := seal.Open(keys, wrapped)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func sealed(t testing.TB, box *seal.Box, plain string) []byte {
	t.Helper()
	out, err := box.Seal([]byte(plain), record)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBox_SealAndOpen holds that a secret of any size comes back, and that no
// two sealings of it are alike.
func TestBox_SealAndOpen(t *testing.T) {
	t.Parallel()
	_, _, box := fresh(t)
	for _, plain := range []string{"", "x", "a secret", strings.Repeat("long ", 1<<16)} {
		first, second := sealed(t, box, plain), sealed(t, box, plain)
		if bytes.Equal(first, second) || len(plain) > 1 && bytes.Contains(first, []byte(plain)) {
			t.Errorf("%d bytes are sealed into the same, or not at all", len(plain))
		}
		for _, s := range [][]byte{first, second} {
			if got, err := box.Open(s, record); err != nil || string(got) != plain {
				t.Errorf("%d bytes: opened %d, %v", len(plain), len(got), err)
			}
		}
	}
}

// TestBox_Context holds that a secret opens only as the record that it was sealed for.
func TestBox_Context(t *testing.T) {
	t.Parallel()
	_, _, box := fresh(t)
	s := sealed(t, box, "a secret")
	for _, context := range []string{"", record + " ", record[1:], strings.ToUpper(record), "webhooks/wh_1"} {
		if plain, err := box.Open(s, context); err == nil || plain != nil || errors.Is(err, seal.ErrUnknownKey) {
			t.Errorf("opened as %q: %v", context, err)
		}
	}
}

// TestBox_Tampering holds that no bit of a sealed secret can change, and no
// length of it, and that a changed key id is told apart.
func TestBox_Tampering(t *testing.T) {
	t.Parallel()
	_, _, box := fresh(t)
	s := sealed(t, box, "a secret")
	for i := range s {
		for bit := range 8 {
			changed := bytes.Clone(s)
			changed[i] ^= 1 << bit
			_, err := box.Open(changed, record)
			if unknown := errors.Is(err, seal.ErrUnknownKey); err == nil || unknown != (1 <= i && i < 5) {
				t.Errorf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
	for n := range s {
		for _, cut := range [][]byte{s[:n], s[n+1:], append(bytes.Clone(s), s[:n+1]...)} {
			if _, err := box.Open(cut, record); err == nil {
				t.Errorf("opened when it was cut at %d", n)
			}
		}
	}
}

// TestKeyset_Tampering holds the same for a wrapped keyset, which also is
// nothing else that the key-encryption key or a data key sealed.
func TestKeyset_Tampering(t *testing.T) {
	t.Parallel()
	keys, wrapped, box := fresh(t)
	refuse := func(what string, wrong []byte) {
		t.Helper()
		if b, err := seal.Open(keys, wrong); err == nil || b != nil || !strings.Contains(err.Error(), "none of the given") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range wrapped {
		for bit := range 8 {
			wrapped[i] ^= 1 << bit
			refuse(fmt.Sprintf("bit %d of byte %d", bit, i), wrapped)
			wrapped[i] ^= 1 << bit
		}
		refuse(fmt.Sprintf("cut at %d", i), wrapped[:i])
		refuse(fmt.Sprintf("%d bytes more", i), append(bytes.Clone(wrapped), make([]byte, i+1)...))
	}
	refuse("a secret", sealed(t, box, string(wrapped)))
	refuse("nothing", nil)
	open(t, keys, wrapped)
}

// TestKeyset_WrongKeys holds that a keyset opens with the key that wrapped it alone, wherever it stands.
func TestKeyset_WrongKeys(t *testing.T) {
	t.Parallel()
	mine, other, third := seal.NewKeyText(), seal.NewKeyText(), seal.NewKeyText()
	wrapped, err := seal.NewKeyset(parse(t, mine+other))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		want bool
	}{{mine, true}, {other + mine, true}, {third + other + mine, true}, {other, false}, {other + third, false}} {
		if _, err := seal.Open(parse(t, c.text), wrapped); (err == nil) != c.want {
			t.Errorf("%d keys: %v, want opened %v", strings.Count(c.text, "\n"), err, c.want)
		}
	}
	if _, err := seal.Open(seal.Keys{}, wrapped); err == nil {
		t.Error("no key opens it")
	}
}

// TestRotate_WithoutAStop goes through what the operator and a running replica
// do: a new key before the old one in the file, then two rotations.
func TestRotate_WithoutAStop(t *testing.T) {
	t.Parallel()
	oldLine, newLine := seal.NewKeyText(), seal.NewKeyText()
	wrapped, err := seal.NewKeyset(parse(t, oldLine))
	if err != nil {
		t.Fatal(err)
	}
	replica := open(t, parse(t, oldLine), wrapped)
	first := sealed(t, replica, "a secret")

	both := parse(t, newLine+oldLine)
	wrapped, next, err := open(t, both, wrapped).Rotate(both)
	if err != nil {
		t.Fatal(err)
	}
	second := sealed(t, next, "a secret")
	if _, err := replica.Open(second, record); !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("the replica meets the new data key: %v, want ErrUnknownKey", err)
	}
	if _, err := seal.Open(parse(t, oldLine), wrapped); err == nil {
		t.Error("the old key opens the new keyset: the first key of the file must wrap it")
	}
	reloaded := open(t, parse(t, newLine), wrapped)
	for _, box := range []*seal.Box{next, reloaded} {
		for _, s := range [][]byte{first, second, sealed(t, reloaded, "a secret")} {
			if plain, err := box.Open(s, record); err != nil || string(plain) != "a secret" {
				t.Errorf("after one rotation: %q, %v", plain, err)
			}
		}
	}

	box := reloaded
	_, newest, err := box.Drop(both)
	if err != nil {
		t.Fatal(err)
	}
	wrapped, next, err = newest.Rotate(both)
	if err != nil {
		t.Fatal(err)
	}
	after := open(t, parse(t, newLine), wrapped)
	for _, b := range []*seal.Box{next, after} {
		if _, err := b.Open(first, record); !errors.Is(err, seal.ErrUnknownKey) {
			t.Errorf("after two rotations the first data key opens: %v", err)
		}
		if plain, err := b.Open(second, record); err != nil || string(plain) != "a secret" {
			t.Errorf("after two rotations the second data key does not open: %v", err)
		}
	}
	if plain, err := box.Open(first, record); err != nil || string(plain) != "a secret" {
		t.Errorf("a box changed under its holder: %v", err)
	}
}

// TestDrop_OnlyTheNewest holds that Drop keeps the data key that seals, and it alone.
func TestDrop_OnlyTheNewest(t *testing.T) {
	t.Parallel()
	keys, wrapped, box := fresh(t)
	var secrets [][]byte
	var err error
	for range 5 {
		secrets = append(secrets, sealed(t, box, "a secret"))
		if wrapped, box, err = box.Rotate(keys); err != nil {
			t.Fatal(err)
		}
	}
	secrets = append(secrets, sealed(t, box, "a secret"))
	for i, s := range secrets {
		if _, err := box.Open(s, record); err != nil {
			t.Errorf("after five rotations, number %d: %v", i, err)
		}
	}
	dropped, last, err := box.Drop(keys)
	if err != nil || len(dropped) >= len(wrapped) {
		t.Fatalf("a keyset of %d bytes after one of %d: %v", len(dropped), len(wrapped), err)
	}
	for _, b := range []*seal.Box{last, open(t, keys, dropped)} {
		for i, s := range secrets {
			_, err := b.Open(s, record)
			if newest := i == len(secrets)-1; newest != (err == nil) || !newest && !errors.Is(err, seal.ErrUnknownKey) {
				t.Errorf("after Drop, number %d: %v", i, err)
			}
		}
		if _, err := box.Open(sealed(t, b, "a secret"), record); err != nil {
			t.Errorf("Drop made another data key: %v", err)
		}
	}
	if _, _, err := box.Rotate(seal.Keys{}); err == nil {
		t.Error("rotated without a key")
	}
}

// TestBox_Concurrent lets the race detector see a box in many hands.
func TestBox_Concurrent(t *testing.T) {
	t.Parallel()
	keys, _, box := fresh(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				s, err := box.Seal([]byte("a secret"), record)
				if err != nil {
					t.Error(err)
				} else if _, err := box.Open(s, record); err != nil {
					t.Error(err)
				}
			}
			if _, _, err := box.Rotate(keys); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// FuzzOpen holds that nothing opens but what was sealed, as a keyset and as a secret.
func FuzzOpen(f *testing.F) {
	keys, wrapped, box := fresh(f)
	s := sealed(f, box, "a secret")
	f.Add([]byte{}, record)
	f.Add(s, record)
	f.Add(s, "")
	f.Add(wrapped, record)
	f.Add(s[:5], record)
	f.Add([]byte{1, 0, 0, 0, 0}, record)
	f.Fuzz(func(t *testing.T, input []byte, context string) {
		if _, err := seal.Open(keys, input); (err == nil) != bytes.Equal(input, wrapped) {
			t.Fatalf("as a keyset: %v", err)
		}
		plain, err := box.Open(input, context)
		if (err == nil) != (bytes.Equal(input, s) && context == record) {
			t.Fatalf("as a secret: %q, %v", plain, err)
		}
	})
}

package main_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPolicyDir_WrongPoliciesAreRefused holds that a server with policies that
// cannot be what their author meant does not start, and says where they stand.
func TestPolicyDir_WrongPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy string
		says   []string
	}{
		"forbids":        {"\n" + `forbid (principal, action, resource);`, []string{"p.cedar:2", "forbids", "permit"}},
		"no Cedar":       {`allow everything`, []string{"p.cedar"}},
		"unknown action": {`permit (principal, action == Action::"compute:join-tokens:steal", resource);`, []string{"p.cedar:1", "compute:join-tokens:steal"}},
		"unknown member": {`permit (principal, action == Action::"compute:join-tokens:read", resource is ComputePool) when { resource.colour == "red" };`, []string{"p.cedar:1", "colour"}},
		"id taken":       {`@id("tenant-admin/own")` + "\n" + auditorsMint, []string{"p.cedar", "tenant-admin/own"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, policies := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(policies, "p.cedar"), []byte(c.policy), 0o600); err != nil {
				t.Fatal(err)
			}
			e := runWith(t, setting{dir: dir}, "serve", "--listen", "127.0.0.1:0", "--policy-dir", policies)
			e.refused(t, 1, append(c.says, "--policy-dir")...)
			wantEmpty(t, dir)
		})
	}
}

func TestPolicyDir_NoFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(auditorsMint), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, policies := range []string{filepath.Join(dir, "none"), file} {
		runWith(t, setting{dir: dir}, "serve", "--listen", "127.0.0.1:0", "--policy-dir", policies).refused(t, 1, "--policy-dir", policies)
		wantEmpty(t, dir)
	}
}

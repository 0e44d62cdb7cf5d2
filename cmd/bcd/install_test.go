package main_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/bettercompute/bettercompute/gen/client"
)

// flagsOf are the flags that a command of bcd has.
func flagsOf(t testing.TB, command string) (flags []string) {
	t.Helper()
	help := runWith(t, setting{}, command, "--help").stdout
	for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z0-9-]+)`).FindAllStringSubmatch(help, -1) {
		flags = append(flags, flag[1])
	}
	return flags
}

// TestInstall_Unit holds that the unit calls bcd as it is, and that bcd is
// started again after a crash, but not when a person must do something.
func TestInstall_Unit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("bcd.service")
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(line, "#") {
			set[name] = value
		}
	}
	words := strings.Fields(set["ExecStart"])
	if len(words) < 2 || words[1] != "run" {
		t.Fatalf("ExecStart is %q", words)
	}
	known := flagsOf(t, "run")
	for _, word := range words {
		if strings.HasPrefix(word, "--") && !slices.Contains(known, word) {
			t.Errorf("bcd run has no %s", word)
		}
	}
	for name, want := range map[string]string{
		"Type": "notify", "Restart": "on-failure", "RestartPreventExitStatus": "1 2", "StateDirectoryMode": "0700",
		"NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "LimitCORE": "0", "SetCredential": "join-token:none", "LoadCredential": "join-token:/etc/bcd/join-token",
	} {
		if got, there := set[name]; !there || got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
}

// TestInstall_UnitWithoutATokenFile holds that what the unit hands on then is
// named as such by a machine that has not joined, and nothing to one that has;
// and that a server which is not verified is waited out, as the unit says.
func TestInstall_UnitWithoutATokenFile(t *testing.T) {
	t.Parallel()
	s, evil := serve(t), serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	good := m.flags
	m.flags = append(slices.Clone(good), "--token-file", m.file("join-token", "none"))
	runWith(t, setting{}, m.args("run")...).refused(t, 1, "/etc/bcd/join-token is not there")
	m.flags = good
	m.url = evil.url
	p := m.run(setting{})
	p.await(t, p.stderr, "--ca-sha256 does not match.* again=")
	m.stops(p)
	m.url = s.url
	m.joins()
	m.flags = append(slices.Clone(good), "--token-file", m.file("join-token", "none"))
	m.joins()
	p = m.run(setting{})
	m.reported()
	m.stops(p)
}

// TestInstall_TheCommandsOfTheDaemonSetWork holds that what its comment says can
// be pasted: the token is in the file that the secret is made of.
func TestInstall_TheCommandsOfTheDaemonSetWork(t *testing.T) {
	t.Parallel()
	s := serve(t)
	dir := t.TempDir()
	_, err := build(dir, "bcctl")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\nprintf '%s\\n' \"$*\"\n"), 0o700)) // there is no cluster
	text, err := os.ReadFile("daemonset.yaml")
	must(t, err)
	script := "set -e\n"
	for line := range strings.Lines(string(text)) {
		if command, found := strings.CutPrefix(line, "#   "); found && command != "rm token\n" {
			script += strings.ReplaceAll(command, "--tenant-id acme", "--tenant-id "+platform)
		}
	}
	key, err := os.ReadFile(filepath.Join(s.data, "admin.key"))
	must(t, err)
	p := launch(t, "/bin/sh", setting{env: []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "BCCTL_SERVER=" + s.url, "BCCTL_KEY=" + strings.TrimSpace(string(key)), "BCCTL_CA_FILE=" + filepath.Join(s.data, "ca.pem"),
	}}, "-c", script)
	if code := p.exit(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if made := p.stdout.String(); made != "create namespace bcd\n-n bcd create secret generic bcd-join-token --from-file=token=./token\n" {
		t.Errorf("kubectl was called with %q", made)
	}
	file := filepath.Join(p.cmd.Dir, "token")
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the token has the mode %v", info.Mode())
	}
	minted, err := os.ReadFile(file)
	must(t, err)
	newMachine(t, s, 1, strings.TrimSpace(string(minted))).joins("--token-file", file)
}

// A pod is what the test looks at of a DaemonSet.
type pod struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct {
				HostNetwork                  bool  `yaml:"hostNetwork"`
				AutomountServiceAccountToken *bool `yaml:"automountServiceAccountToken"`
				Tolerations                  []map[string]string
				Containers                   []struct {
					Command         []string
					Env             []struct{ Name string }
					SecurityContext struct {
						Privileged               bool
						AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
						ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
						Capabilities             struct{ Add, Drop []string }
					} `yaml:"securityContext"`
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
						ReadOnly  bool   `yaml:"readOnly"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name   string
					Secret *struct {
						DefaultMode int `yaml:"defaultMode"`
					}
				}
			}
		}
	}
}

// TestInstall_DaemonSet holds that the manifest calls bcd as it is, gives it the
// token as a file alone, and nothing that it does not need.
func TestInstall_DaemonSet(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set pod
	for d := yaml.NewDecoder(bytes.NewReader(text)); set.Kind != "DaemonSet"; {
		set = pod{}
		if err := d.Decode(&set); errors.Is(err, io.EOF) {
			t.Fatal("it has no DaemonSet")
		} else if err != nil {
			t.Fatal(err)
		}
	}
	spec := set.Spec.Template.Spec
	if !spec.HostNetwork || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken || len(spec.Containers) != 1 ||
		len(spec.Tolerations) != 1 || spec.Tolerations[0]["operator"] != "Exists" {
		t.Errorf("the pod is %+v", spec)
	}
	c := spec.Containers[0]
	known := flagsOf(t, "run")
	for _, word := range c.Command[2:] {
		flag, value, _ := strings.Cut(word, "=")
		if !slices.Contains(known, flag) {
			t.Errorf("bcd run has no %s", flag)
		}
		inside := slices.ContainsFunc(c.VolumeMounts, func(m struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		}) bool {
			return strings.HasPrefix(value, m.MountPath) || strings.HasPrefix(m.MountPath, value)
		})
		if !inside {
			t.Errorf("%s is on no volume", word)
		}
	}
	for _, e := range c.Env {
		if flag := "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(e.Name, "BCD_"), "_", "-")); !slices.Contains(known, flag) || strings.Contains(flag, "token") {
			t.Errorf("the environment has %s", e.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if m.ReadOnly == (m.Name == "state") {
			t.Errorf("%s is read-only: %v", m.MountPath, m.ReadOnly)
		}
	}
	if s := c.SecurityContext; s.Privileged || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem ||
		len(s.Capabilities.Add) > 0 || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("the container may do %+v", s)
	}
	for _, v := range spec.Volumes {
		if v.Secret != nil && v.Secret.DefaultMode != 0o400 {
			t.Errorf("the token has the mode %o", v.Secret.DefaultMode)
		}
	}
}

package main_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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
		"NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "LoadCredential": "join-token:/etc/bcd/join-token",
	} {
		if got, there := set[name]; !there || got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
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

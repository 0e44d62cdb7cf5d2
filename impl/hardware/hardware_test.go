package hardware_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/hardware"
)

// TestCollect_AWholeMachine holds what is claimed of an ordinary one.
func TestCollect_AWholeMachine(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.dmi("product_uuid", "4C4C4544-0051-3410-8051-B5C04F375931\n")
	m.dmi("product_serial", "  CZ2D1X0QTP \n")
	m.dmi("chassis_serial", "CHASSIS\n")
	m.dmi("board_serial", "BOARD\n")
	m.nic("eno2", card("3c:ec:ef:12:34:57"))
	m.nic("eno1", card("3C:EC:EF:12:34:56"))
	m.nic("lo", map[string]string{"address": "00:00:00:00:00:00", "addr_assign_type": "0"})
	m.file(m.Proc, "driver/nvidia/gpus/0000:3b:00.0/information", "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-13fd0930-06c3-5975-8720-72c72ee7a823\nBus Type: \t PCIe\n")
	want := hardware.Claims{
		ProductUUID: "4C4C4544-0051-3410-8051-B5C04F375931", Serial: "CZ2D1X0QTP", MACs: []string{"3c:ec:ef:12:34:56", "3c:ec:ef:12:34:57"},
		GPUUUIDs: []string{"GPU-13fd0930-06c3-5975-8720-72c72ee7a823"}, Hostname: "rack7-u12", Environment: "host",
	}
	if got := m.claims(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestCollect_NothingIsThere holds that what a machine has not is absent.
func TestCollect_NothingIsThere(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.Hostname = func() (string, error) { return "", nil }
	if got := m.claims(); !reflect.DeepEqual(got, hardware.Claims{Environment: "host"}) {
		t.Errorf("%+v", got)
	}
	m.Hostname = func() (string, error) { return "", errKernel }
	if _, warnings := m.collect(); len(warnings) != 1 || !strings.Contains(warnings[0], "host name") {
		t.Errorf("warnings %q", warnings)
	}
}

// TestCollect_TextIsMadeFit holds that firmware's text is claimed as the API
// takes it, and nothing is judged: a placeholder is claimed as it stands there.
func TestCollect_TextIsMadeFit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"To Be Filled By O.E.M.\n":             "To Be Filled By O.E.M.",
		"\x00\x00":                             "",
		" \n":                                  "",
		"CZ2D\x00\x07\x7f1X0Q\xffTP\n":         "CZ2D1X0QTP",
		"Füß\r\n":                              "F",
		strings.Repeat("x", 300) + "\n":        strings.Repeat("x", 128),
		strings.Repeat("x", 127) + " y" + "\n": strings.Repeat("x", 127),
		`with "quotes" and \`:                  `with "quotes" and \`,
	} {
		m := newMachine(t)
		m.dmi("product_serial", text)
		if got := m.claims().Serial; got != want {
			t.Errorf("%q is claimed as %q, want %q", text, got, want)
		}
	}
	m := newMachine(t)
	m.Hostname = func() (string, error) { return strings.Repeat("h", 300), nil }
	if got := m.claims().Hostname; got != strings.Repeat("h", 253) {
		t.Errorf("a host name of %d characters", len(got))
	}
}

// TestCollect_SerialOfTheChassis holds that it stands in where the system has
// none, but not where ours may not be read, and that a board's never does.
func TestCollect_SerialOfTheChassis(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.dmi("board_serial", "BOARD\n")
	if got := m.claims().Serial; got != "" {
		t.Errorf("claims %q", got)
	}
	m.dmi("chassis_serial", "CHASSIS\n")
	if got := m.claims().Serial; got != "CHASSIS" {
		t.Errorf("claims %q", got)
	}
	m.dmi("product_serial", "\n")
	if got := m.claims().Serial; got != "CHASSIS" {
		t.Errorf("claims %q", got)
	}
	m.dmi("product_serial", "System Serial Number\n")
	if got := m.claims().Serial; got != "System Serial Number" {
		t.Errorf("claims %q", got)
	}

	m = newMachine(t)
	m.dmi("chassis_serial", "CHASSIS\n")
	m.unreadable(m.Sys, "class/dmi/id/product_serial")
	got, warnings := m.collect()
	if got.Serial != "" || len(warnings) != 1 || !strings.Contains(warnings[0], "product_serial") {
		t.Errorf("claims %q, warnings %q", got.Serial, warnings)
	}
}

// TestCollect_Environment holds how Kubernetes is known.
func TestCollect_Environment(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.InCluster = true
	if got := m.claims().Environment; got != "kubernetes" {
		t.Errorf("with an API server in the environment: %s", got)
	}
	m.InCluster = false
	m.file(m.Run, "secrets/kubernetes.io/serviceaccount/token", "ey")
	if got := m.claims().Environment; got != "kubernetes" {
		t.Errorf("with a service account: %s", got)
	}
}

// TestCollect_TheHostItself holds that a real machine can be read, whoever asks.
func TestCollect_TheHostItself(t *testing.T) {
	t.Parallel()
	first, _ := hardware.Collect(t.Context(), hardware.Host())
	second, warnings := hardware.Collect(t.Context(), hardware.Host())
	if !reflect.DeepEqual(first, second) {
		t.Errorf("%+v, and then %+v", first, second)
	}
	t.Logf("%+v %q", first, warnings)
}

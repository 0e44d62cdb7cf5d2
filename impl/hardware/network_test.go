package hardware_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// TestMACs_PhysicalOnesAlone holds which interfaces count, and with which address.
func TestMACs_PhysicalOnesAlone(t *testing.T) {
	t.Parallel()
	const own, current = "3c:ec:ef:00:00:01", "3c:ec:ef:00:00:99"
	slave := with(with(card(current), "bonding_slave/perm_hwaddr", own), "bonding_slave/state", "active")
	for name, c := range map[string]struct {
		files     map[string]string
		permanent string
		want      string
	}{
		"own address":                 {card(own), "", own},
		"kernel knows better":         {card(current), own, own},
		"changed, kernel knows":       {with(card(current), "addr_assign_type", "3"), own, own},
		"changed, nobody knows":       {with(card(current), "addr_assign_type", "3"), "", ""},
		"random":                      {with(card(current), "addr_assign_type", "1"), "", ""},
		"copied":                      {with(card(current), "addr_assign_type", "2"), "", ""},
		"old kernel without the type": {map[string]string{"address": own, "device/vendor": "x"}, "", ""},
		"member of a bond":            {slave, "", own},
		"member, kernel knows":        {with(card(current), "bonding_slave/perm_hwaddr", current), own, own},
		"bond, bridge, VLAN, veth":    {map[string]string{"address": current, "addr_assign_type": "0"}, "", ""},
		"bond that the kernel knows":  {map[string]string{"address": current, "addr_assign_type": "0"}, own, ""},
		"virtual function":            {with(card(current), "device/physfn/vendor", "x"), "", ""},
		"InfiniBand":                  {card("80:00:02:08:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:1b:15:f1"), "", ""},
		"InfiniBand, kernel knows":    {card("80:00:02:08"), "80:00:02:08:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:1b:15:f1", ""},
		"8 bytes":                     {card("02:00:5e:10:00:00:00:01"), "", ""},
		"zero":                        {card("00:00:00:00:00:00"), "", ""},
		"zero, known to the kernel":   {card(own), "00:00:00:00:00:00", own},
		"empty":                       {card(""), "", ""},
		"no address":                  {map[string]string{"device/vendor": "x", "addr_assign_type": "0"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.nic("eth0", c.files)
			if c.permanent != "" {
				m.Permanent = permanent(map[string]string{"eth0": c.permanent})
			}
			var want []string
			if c.want != "" {
				want = append(want, c.want)
			}
			wantList(t, name, m.claims().MACs, want...)
		})
	}
}

// TestMACs_TwoPortsWithOneAddressAreOne holds that each is claimed once.
func TestMACs_TwoPortsWithOneAddressAreOne(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.nic("swp1", card("3c:ec:ef:00:00:01"))
	m.nic("swp2", card("3c:ec:ef:00:00:01"))
	wantList(t, "addresses", m.claims().MACs, "3c:ec:ef:00:00:01")
}

// TestMACs_NoMoreThanTheAPITakes holds that a machine with hundreds of ports joins.
func TestMACs_NoMoreThanTheAPITakes(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for i := range 300 {
		m.nic(fmt.Sprintf("eth%d", i), card(fmt.Sprintf("3c:ec:ef:00:%02x:%02x", i>>8, i&255)))
	}
	got := m.claims().MACs
	if len(got) != 64 || got[0] != "3c:ec:ef:00:00:00" || got[63] != "3c:ec:ef:00:00:3f" {
		t.Errorf("%d addresses: %q", len(got), got)
	}
}

// TestMACs_WithoutTheKernelSysfsIsAsked holds that it is warned of, and works.
func TestMACs_WithoutTheKernelSysfsIsAsked(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.nic("eth0", card("3c:ec:ef:00:00:01"))
	m.Permanent = func() (map[string]net.HardwareAddr, error) { return nil, errKernel }
	got, warnings := m.collect()
	wantList(t, "addresses", got.MACs, "3c:ec:ef:00:00:01")
	if len(warnings) != 1 || !strings.Contains(warnings[0], errKernel.Error()) {
		t.Errorf("warnings %q", warnings)
	}
}

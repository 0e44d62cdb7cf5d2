package hardware

import (
	"net"
	"os"
	"path/filepath"
	"strings"
)

// notRandom is the addr_assign_type of an address that is the device's own:
// neither made up by the kernel, nor copied from another, nor set by somebody.
const notRandom = "0"

// macs returns the permanent addresses of the physical interfaces. Bonds,
// bridges, VLANs and the like have no device behind them; a virtual function
// has, but its address is whatever its physical function gave it.
func (r *reader) macs() []string {
	folder := filepath.Join(r.roots.Sys, "class/net")
	entries, err := os.ReadDir(folder)
	if err != nil && !absent(err) {
		r.warn("%s cannot be read: %v", folder, cause(err))
	}
	permanent := map[string]net.HardwareAddr{}
	if r.roots.Permanent != nil {
		if known, err := r.roots.Permanent(); err != nil {
			r.warn("the kernel does not tell permanent network addresses: %v", err)
		} else {
			permanent = known
		}
	}
	var found []string
	for _, e := range entries {
		device := filepath.Join(folder, e.Name(), "device")
		if !exists(device) || exists(filepath.Join(device, "physfn")) {
			continue
		}
		if mac := r.mac(e.Name(), permanent[e.Name()]); mac != "" {
			found = append(found, mac)
		}
	}
	return sorted(found)
}

// mac is the permanent address of one interface: what the kernel says it is,
// else what a bond has saved of its member, else the address that it has, where
// that is its own. An address of another length, as InfiniBand's, is none.
func (r *reader) mac(name string, known net.HardwareAddr) string {
	if mac := usable(known); mac != "" {
		return mac
	}
	of := filepath.Join("class/net", name)
	if saved := r.text(r.roots.Sys, filepath.Join(of, "bonding_slave/perm_hwaddr")); saved != "" {
		return parseMAC(saved)
	}
	if r.text(r.roots.Sys, filepath.Join(of, "addr_assign_type")) != notRandom {
		return ""
	}
	return parseMAC(r.text(r.roots.Sys, filepath.Join(of, "address")))
}

func parseMAC(text string) string {
	address, err := net.ParseMAC(text)
	if err != nil {
		return ""
	}
	return usable(address)
}

// usable is an address as text, "" for one that is no Ethernet address or all zero.
func usable(address net.HardwareAddr) string {
	if len(address) != 6 || strings.Trim(string(address), "\x00") == "" {
		return ""
	}
	return address.String()
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

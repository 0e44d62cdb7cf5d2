package hardware

import (
	"encoding/binary"
	"iter"
	"net"
	"strings"
	"syscall"
)

// attributePermanent is IFLA_PERM_ADDRESS, which kernels have since 5.6. It
// says what the older ETHTOOL_GPERMADDR does, for all interfaces in one answer.
const attributePermanent = 54

// permanentAddresses asks the kernel, of the network namespace of this process.
func permanentAddresses() (map[string]net.HardwareAddr, error) {
	answer, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	return parseLinks(answer)
}

func parseLinks(answer []byte) (map[string]net.HardwareAddr, error) {
	messages, err := syscall.ParseNetlinkMessage(answer)
	if err != nil {
		return nil, err
	}
	found := map[string]net.HardwareAddr{}
	for _, m := range messages {
		if m.Header.Type != syscall.RTM_NEWLINK || len(m.Data) < syscall.SizeofIfInfomsg {
			continue
		}
		var name string
		var address net.HardwareAddr
		for kind, value := range attributes(m.Data[syscall.SizeofIfInfomsg:]) {
			switch kind {
			case syscall.IFLA_IFNAME:
				name = strings.TrimRight(string(value), "\x00")
			case attributePermanent:
				address = value
			}
		}
		if name != "" && len(address) > 0 {
			found[name] = address
		}
	}
	return found, nil
}

// attributes goes through the attributes of a message, up to one that does not
// fit; the one of package syscall panics there.
func attributes(data []byte) iter.Seq2[uint16, []byte] {
	const head, alignment = syscall.SizeofRtAttr, syscall.RTA_ALIGNTO
	return func(yield func(uint16, []byte) bool) {
		for len(data) >= head {
			length := int(binary.NativeEndian.Uint16(data))
			if length < head || length > len(data) || !yield(binary.NativeEndian.Uint16(data[2:]), data[head:length]) {
				return
			}
			data = data[min(len(data), (length+alignment-1)&^(alignment-1)):]
		}
	}
}

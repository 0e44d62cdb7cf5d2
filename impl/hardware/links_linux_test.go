package hardware_test

import (
	"encoding/binary"
	"net"
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/impl/hardware"
)

// link is a message of the kernel about one interface.
func link(kind uint16, attributes map[uint16][]byte) []byte {
	body := make([]byte, 16) // struct ifinfomsg
	for kind, value := range attributes {
		body = binary.NativeEndian.AppendUint16(body, uint16(4+len(value)))
		body = binary.NativeEndian.AppendUint16(body, kind)
		body = append(body, value...)
		body = append(body, make([]byte, -len(value)&3)...)
	}
	head := make([]byte, 16)
	binary.NativeEndian.PutUint32(head, uint32(len(head)+len(body)))
	binary.NativeEndian.PutUint16(head[4:], kind)
	return append(head, body...)
}

// TestLinks_PermanentAddresses holds how the kernel's answer is read.
func TestLinks_PermanentAddresses(t *testing.T) {
	t.Parallel()
	own := []byte{0x3c, 0xec, 0xef, 0, 0, 1}
	var answer []byte
	for _, m := range [][]byte{
		link(syscall.RTM_NEWLINK, map[uint16][]byte{syscall.IFLA_IFNAME: []byte("eth0\x00"), syscall.IFLA_ADDRESS: {1, 2, 3, 4, 5, 6}, 54: own}),
		link(syscall.RTM_NEWLINK, map[uint16][]byte{syscall.IFLA_IFNAME: []byte("veth0\x00"), syscall.IFLA_ADDRESS: {1, 2, 3, 4, 5, 6}}),
		link(syscall.RTM_NEWLINK, map[uint16][]byte{54: own}),
		link(syscall.NLMSG_DONE, nil),
	} {
		answer = append(answer, m...)
	}
	got, err := hardware.ParseLinks(answer)
	if err != nil || len(got) != 1 || got["eth0"].String() != "3c:ec:ef:00:00:01" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := hardware.ParseLinks(answer[:50]); err == nil {
		t.Error("half an answer is read")
	}
}

// TestLinks_OfThisMachine holds that the kernel answers, about interfaces that are there.
func TestLinks_OfThisMachine(t *testing.T) {
	t.Parallel()
	got, err := hardware.PermanentAddresses()
	if err != nil {
		t.Fatal(err)
	}
	for name := range got {
		if _, err := net.InterfaceByName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Logf("%v", got)
}

func FuzzParseLinks(f *testing.F) {
	f.Add(link(syscall.RTM_NEWLINK, map[uint16][]byte{syscall.IFLA_IFNAME: []byte("eth0\x00"), 54: {1, 2, 3, 4, 5, 6}}))
	if answer, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC); err == nil {
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		got, err := hardware.ParseLinks(answer)
		for name, address := range got {
			if err != nil || name == "" || len(address) == 0 {
				t.Fatalf("%q has %v, %v", name, address, err)
			}
		}
	})
}

package hardware

import "net"

// ParseLinks reads the kernel's answer.
func ParseLinks(answer []byte) (map[string]net.HardwareAddr, error) { return parseLinks(answer) }

// PermanentAddresses asks the kernel.
func PermanentAddresses() (map[string]net.HardwareAddr, error) { return permanentAddresses() }

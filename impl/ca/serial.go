package ca

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
)

const serialBytes = 16

// NewSerial returns a fresh serial number as it is kept: 32 lower-case hex
// characters, of which 126 bits are random. It is positive, and as DER always
// 16 bytes long.
func NewSerial() string {
	var b [serialBytes]byte
	rand.Read(b[:])         // never fails: crypto/rand aborts the program instead
	b[0] = b[0]&0x3f | 0x40 // no sign bit, and no leading zero
	return hex.EncodeToString(b[:])
}

// ParseSerial reads what NewSerial and FormatSerial write.
func ParseSerial(text string) (*big.Int, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != serialBytes || hex.EncodeToString(b) != text {
		return nil, errors.New("ca: a serial number must be 32 lower-case hex characters")
	}
	serial := new(big.Int).SetBytes(b)
	if serial.Sign() == 0 {
		return nil, errors.New("ca: a serial number must not be zero")
	}
	return serial, nil
}

// FormatSerial writes a serial number as it is kept. One of another CA may be longer.
func FormatSerial(serial *big.Int) string { return fmt.Sprintf("%0*x", 2*serialBytes, serial) }

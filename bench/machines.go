package main

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"sync/atomic"
)

const joinPath = "/api/compute/nodes/join"

// lastMachine counts the machines of a run, none of which joins twice.
var lastMachine atomic.Uint32

// joinBody is the join of a machine that nobody has seen before: its key, serial
// number, UUID and network address are its own, and none looks like a placeholder.
func joinBody() (map[string]any, error) {
	csr, err := newCSR("bcd")
	if err != nil {
		return nil, err
	}
	var uuid [16]byte
	rand.Read(uuid[:])                                      // never fails
	uuid[6], uuid[8] = uuid[6]&0x0f|0x40, uuid[8]&0x3f|0x80 // version 4
	n := lastMachine.Add(1)
	return map[string]any{"csr": csr, "claims": map[string]any{
		"serial":      "CZ" + rand.Text(),
		"productUuid": fmt.Sprintf("%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:]),
		"macs":        []string{fmt.Sprintf("3c:ec:ef:%02x:%02x:%02x", byte(n>>16), byte(n>>8), byte(n))},
	}}, nil
}

// joins is the prepare of machines that join with these tokens in turn.
func (t *target) joins(tokens []string) prepare {
	return func(i int) (*http.Request, error) {
		body, err := joinBody()
		if err != nil {
			return nil, err
		}
		request, err := postJSON("https://"+t.address+joinPath, body)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+tokens[i%len(tokens)])
		return request, nil
	}
}

package hardware_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/hardware"
)

// FuzzParse holds that claims of a file come out as they went in.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{}`, `{"serial": "x", "macs": ["3c:ec:ef:12:34:56"]}`, `{"serial": "\u0041"}`, `null`, `{}{}`, `{"claims": {}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		claims, err := hardware.Parse(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := hardware.Parse(again); err != nil || !reflect.DeepEqual(second, normal(claims)) {
			t.Fatalf("%+v, and then %+v, %v", claims, second, err)
		}
	})
}

// normal is without empty lists, which are not written.
func normal(c hardware.Claims) hardware.Claims {
	if len(c.MACs) == 0 {
		c.MACs = nil
	}
	if len(c.GPUUUIDs) == 0 {
		c.GPUUUIDs = nil
	}
	return c
}

// FuzzCollect holds that whatever firmware and drivers say, what is claimed is
// what the API takes.
func FuzzCollect(f *testing.F) {
	f.Add("CZ2D1X0QTP\n", "3c:ec:ef:12:34:56\n", "GPU UUID: "+gpuA+"\n", "5ab32c7e97ef5251\n")
	f.Add("\x00\xff", "80:00:02:08", "GPU UUID:\n", "0x")
	f.Fuzz(func(t *testing.T, text, address, information, unique string) {
		if len(text)+len(address)+len(information)+len(unique) > 4096 {
			t.Skip()
		}
		m := newMachine(t)
		m.dmi("product_uuid", text)
		m.dmi("product_serial", text)
		m.nic("eth0", card(strings.TrimSuffix(address, "\n")))
		m.file(m.Proc, "driver/nvidia/gpus/0/information", information)
		m.file(m.Sys, "class/drm/card0/device/unique_id", unique)
		m.Hostname = func() (string, error) { return text, nil }
		claims, _ := m.collect()
		claimed, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hardware.Parse(claimed); err != nil {
			t.Fatalf("%s: %v", claimed, err)
		}
	})
}

package hardware_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/hardware"
)

// TestReadFile holds that claims of a file are what the API takes, and that
// everything that is wrong with them is named.
func TestReadFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "claims.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"productUuid": "Not Settable", "serial": "x", "macs": ["3c:ec:ef:12:34:56"], "gpuUuids": ["` + gpuA + `"], "hostname": "h", "environment": "kubernetes"}` + "\n")
	want := hardware.Claims{ProductUUID: "Not Settable", Serial: "x", MACs: []string{"3c:ec:ef:12:34:56"}, GPUUUIDs: []string{gpuA}, Hostname: "h", Environment: "kubernetes"}
	if got, err := hardware.ReadFile(file); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	write(`{}`)
	if got, err := hardware.ReadFile(file); err != nil || !reflect.DeepEqual(got, hardware.Claims{}) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, says := range map[string][]string{
		"":                               {"is empty"},
		"null":                           {"claims", "null"},
		"[]":                             {"claims", "type"},
		"{":                              {"is not JSON"},
		"{} {}":                          {"is not JSON"},
		`{}, "csr": "y", "x": {}`:        {"is not JSON"},
		"\ufeff{}":                       {"is not JSON"},
		`{"serial": 1}`:                  {"serial", "type"},
		`{"serial": ""}`:                 {"serial", "pattern"},
		`{"serial": null}`:               {"serial", "null"},
		`{"Serial": "x"}`:                {"Serial", "unknown"},
		`{"serial": "x", "serial": "x"}`: {"serial", "duplicate"},
		`{"serial": "a\u0007b", "macs": ["x"], "environment": "moon"}`:                      {"serial", "macs[0]", "environment", "enum"},
		`{"serial": "` + strings.Repeat("x", 129) + `"}`:                                    {"serial", "128", "length"},
		`{"macs": [` + strings.Repeat(`"3c:ec:ef:12:34:56",`, 64) + `"3c:ec:ef:12:34:56"]}`: {"macs", "64", "items"},
		`{"serial": "` + strings.Repeat("x", 70_000) + `"}`:                                 {"larger than"},
	} {
		write(text)
		_, err := hardware.ReadFile(file)
		if err == nil {
			t.Errorf("%.60s: taken", text)
			continue
		}
		for _, word := range append(says, file) {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%.60s: the error does not say %q: %v", text, word, err)
			}
		}
	}
	for name, says := range map[string]string{filepath.Join(t.TempDir(), "none"): "no such file", t.TempDir(): "is a directory"} {
		if _, err := hardware.ReadFile(name); err == nil || !strings.Contains(err.Error(), says) || strings.Count(err.Error(), name) != 1 {
			t.Errorf("%v", err)
		}
	}
}

package attest_test

import (
	"testing"

	"github.com/bettercompute/bettercompute/impl/store"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// claimsWith are claims of one identifier, by its name in the spec.
func claimsWith(t testing.TB, field, value string) store.Claims {
	t.Helper()
	switch field {
	case "serial":
		return store.Claims{Serial: value}
	case "productUuid":
		return store.Claims{ProductUUID: value}
	case "mac":
		return store.Claims{MACs: []string{value}}
	case "gpuUuid":
		return store.Claims{GPUUUIDs: []string{value}}
	}
	t.Fatalf("there is no identifier %q", field)
	return store.Claims{}
}

const (
	uuid    = "4c4c4544-0042-3510-8052-b3c04f4b4e32"
	swapped = "44454c4c-4200-1035-8052-b3c04f4b4e32"
	mac     = "3c:ec:ef:12:34:56"
	mac2    = "3c:ec:ef:12:34:57"
	gpu     = "gpu-8f6b1c2d-03e4-4b5a-9c7d-1e2f3a4b5c6d"
	gpu2    = "gpu-8f6b1c2d-03e4-4b5a-9c7d-1e2f3a4b5c6e"
)

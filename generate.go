// Package bettercompute is the root of the module; what it holds is the order to
// generate everything that the spec pages declare.
package bettercompute

//go:generate go run ./tools/specc -spec spec -out gen -fsm fsm

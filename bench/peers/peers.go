// Package peers has what other generators make of joinTokens.create: go generate
// ./peers, in bench, makes it anew after the spec has changed.
package peers

//go:generate go run ./reduce ../../gen/openapi-3.0.json create.json
//go:generate go tool ogen --target ogenapi --package ogenapi --config ogenapi/ogen.yml --clean create.json
//go:generate go tool oapi-codegen --config strict/oapi.yaml create.json

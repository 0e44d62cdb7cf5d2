package main

import (
	"fmt"
	"slices"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
)

// api writes the server's side: oapi-codegen's models and strict server, and
// our method table and one interface for each group.
func (e *emitter) api() error {
	document := (&documentWriter{e.spec, "3.0.3", true, e.ImportPath("wire")}).document()
	options := oapiOptions("api")
	options.Generate = codegen.GenerateOptions{Models: true, StdHTTPServer: true, Strict: true}
	if err := e.oapi("api/server.gen.go", document, options); err != nil {
		return err
	}
	if err := e.goFile("api/methods.gen.go", "api_methods.tmpl", e.view()); err != nil {
		return err
	}
	return e.encoders()
}

// client writes the Go SDK: oapi-codegen's models and client, under a layer of ours.
func (e *emitter) client() error {
	document := (&documentWriter{e.spec, "3.0.3", true, ""}).document()
	options := oapiOptions("client")
	options.Generate = codegen.GenerateOptions{Models: true, Client: true}
	options.OutputOptions.ClientTypeName = "HTTPClient"
	// Our layer reads the answers, so that a second client around the first would be dead code.
	options.OutputOptions.UserTemplates = map[string]string{"client-with-responses.tmpl": `{{""}}` + "\n"}
	if err := e.oapi("client/http.gen.go", withoutParameters(document), options); err != nil {
		return err
	}
	for _, name := range clientFiles {
		if err := e.goFile("client/"+name+".gen.go", "client_"+name+".tmpl", e.view()); err != nil {
			return err
		}
	}
	return nil
}

// clientFiles are the files of our layer, each with a template.
var clientFiles = []string{"client", "retry", "errors", "stream", "methods"}

// withoutParameters leaves out the parameters of all operations. The only one
// is a header of streams, which our layer sets; without it the client needs
// nothing but the standard library.
func withoutParameters(document object) object {
	out := slices.Clone(document)
	for i, part := range out {
		if part.name != "paths" {
			continue
		}
		paths := slices.Clone(part.value.(object))
		for j, path := range paths {
			item := slices.Clone(path.value.(object))
			for k, operation := range item {
				item[k].value = slices.DeleteFunc(slices.Clone(operation.value.(object)), func(m member) bool {
					return m.name == "parameters"
				})
			}
			paths[j].value = item
		}
		out[i].value = paths
	}
	return out
}

func oapiOptions(name string) codegen.Configuration {
	version := "v2" // the exact version is go.mod's; a drift check sees any change
	return codegen.Configuration{
		PackageName: name,
		OutputOptions: codegen.OutputOptions{
			NameNormalizer:                   string(codegen.NameNormalizerFunctionToCamelCaseWithInitialisms),
			AdditionalInitialisms:            additionalInitialisms,
			GenerateTypesForAnonymousSchemas: true,
			SkipPrune:                        true,
		},
		Compatibility: codegen.CompatibilityOptions{
			AlwaysPrefixEnumValues: true,
		},
		NoVCSVersionOverride: &version,
	}
}

// oapiLock is held while oapi-codegen works, which keeps its options in globals.
var oapiLock sync.Mutex

func (e *emitter) oapi(name string, document object, options codegen.Configuration) error {
	text, err := indented(document)
	if err != nil {
		return err
	}
	loaded, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := options.Validate(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	oapiLock.Lock()
	source, err := codegen.Generate(loaded, options)
	oapiLock.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	e.files[name] = []byte(source)
	return nil
}

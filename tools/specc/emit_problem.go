package main

// problem writes the error codes and rules.
func (e *emitter) problem() error {
	return e.goFile("problem/problem.gen.go", "problem.tmpl", e.view())
}

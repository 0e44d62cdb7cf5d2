// Package migrations holds the schema: portable SQL files, applied in the order of their numbers and never changed afterwards.
//
// A file is named NNNN_name.sql. Both databases run the same text, but for
// what stands in /*postgres …*/: a comment to SQLite, plain SQL to Postgres.
// Key columns are compared byte by byte on both, hence COLLATE "C" there.
package migrations

import "embed"

// FS holds the files.
//
//go:embed *.sql
var FS embed.FS

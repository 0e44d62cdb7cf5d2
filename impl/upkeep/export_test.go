package upkeep

import "log/slog"

// Quiet is quiet.
func Quiet(h slog.Handler) slog.Handler { return quiet{h} }

package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/bettercompute/bettercompute/impl/store"
)

func newLog(w io.Writer, level, format string) (*slog.Logger, error) {
	levels := map[string]slog.Level{
		"trace": store.LevelTrace, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}
	least, ok := levels[level]
	if !ok {
		return nil, fmt.Errorf("--log-level %q is none of trace, debug, info, warn, error", level)
	}
	options := &slog.HandlerOptions{Level: least, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.LevelKey && a.Value.Any() == store.LevelTrace {
			return slog.String(slog.LevelKey, "TRACE")
		}
		return a
	}}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	default:
		return nil, fmt.Errorf("--log-format %q is neither text nor json", format)
	}
}

func quietLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

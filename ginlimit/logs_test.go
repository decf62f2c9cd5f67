package ginlimit

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// captureWarnings sends slog to a buffer for the test, and returns a count of its warnings.
func captureWarnings(t *testing.T) func() int {
	t.Helper()
	var buf bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&buf, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return func() int { return strings.Count(buf.String(), "level=WARN") }
}

package openai

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// warnings writes to the log, one line in a period.
type warnings struct {
	every time.Duration
	last  atomic.Int64 // Unix nanoseconds; 0 = never
}

func (w *warnings) warn(ctx context.Context, message string) {
	now, last := time.Now().UnixNano(), w.last.Load()
	// If the clock is set back by a step, lines must not be suppressed for as long as the step.
	if last != 0 && now >= last && now-last < int64(w.every) {
		return
	}
	if w.last.CompareAndSwap(last, now) {
		slog.WarnContext(ctx, message)
	}
}

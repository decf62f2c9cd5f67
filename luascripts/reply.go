package luascripts

import (
	"fmt"
	"time"
)

// Reply is a script's word on one window.
type Reply struct {
	Allowed    bool
	Count      int           // requests in the window; after Admit, with this one where it was admitted
	RetryAfter time.Duration // whole milliseconds; > 0 when rejected, otherwise 0
}

// decodeDecision decodes a decision on windows: all of them admitted, or the replies end with the
// one that rejected.
func decodeDecision(raw any, windows int) ([]Reply, error) {
	replies, err := decode(raw)
	if err != nil {
		return nil, err
	}
	for i, r := range replies {
		last := i == len(replies)-1
		if !r.Allowed && !last || r.Allowed && last && len(replies) != windows || i >= windows {
			return nil, fmt.Errorf("reply speaks of %d windows, window %d allowed %t, where %d were asked", len(replies), i+1, r.Allowed, windows)
		}
	}
	return replies, nil
}

// decodeEach decodes one reply for each of the windows.
func decodeEach(raw any, windows int) ([]Reply, error) {
	replies, err := decode(raw)
	if err == nil && len(replies) != windows {
		return nil, fmt.Errorf("reply speaks of %d windows where %d were asked", len(replies), windows)
	}
	return replies, err
}

// decode turns a flat reply of three integers a window into at least one Reply. It trusts nothing:
// a proxy, a module or another version of the script may stand between.
func decode(raw any) ([]Reply, error) {
	values, ok := raw.([]any)
	if !ok || len(values) == 0 || len(values)%3 != 0 {
		return nil, fmt.Errorf("reply is %T of %d values, want an array of three integers a window", raw, len(values))
	}
	replies := make([]Reply, len(values)/3)
	for i := range replies {
		allowed, ok1 := values[3*i].(int64)
		count, ok2 := values[3*i+1].(int64)
		retry, ok3 := values[3*i+2].(int64)
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("reply for window %d is (%T, %T, %T), want three integers", i+1, values[3*i], values[3*i+1], values[3*i+2])
		}
		if allowed != 0 && allowed != 1 || count < 0 || retry < 0 || retry > maxRetryMS || (allowed == 0) != (retry > 0) {
			return nil, fmt.Errorf("reply for window %d is (%d, %d, %d), which is no decision", i+1, allowed, count, retry)
		}
		replies[i] = Reply{Allowed: allowed == 1, Count: int(count), RetryAfter: time.Duration(retry) * time.Millisecond}
	}
	return replies, nil
}

// maxRetryMS is the longest time.Duration in milliseconds.
const maxRetryMS = int64(1<<63-1) / int64(time.Millisecond)

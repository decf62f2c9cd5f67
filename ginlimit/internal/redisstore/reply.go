package redisstore

import (
	"fmt"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// decodeAdmission decodes a decision on claims. Either all are allowed, or the last verdict rejects.
func decodeAdmission(raw any, claims int) ([]budget.Verdict, error) {
	verdicts, err := decode(raw)
	if err != nil {
		return nil, err
	}
	for i, v := range verdicts {
		last := i == len(verdicts)-1
		if !v.Allowed && !last || v.Allowed && last && len(verdicts) != claims || i >= claims {
			return nil, fmt.Errorf("reply speaks of %d windows, window %d allowed %t, where %d were asked",
				len(verdicts), i+1, v.Allowed, claims)
		}
	}
	return verdicts, nil
}

// decodeTime splits a reply into the time of the decision, in Unix milliseconds, and the rest.
func decodeTime(raw any) (at int64, rest any, err error) {
	values, _ := raw.([]any)
	if len(values) > 0 {
		at, _ = values[0].(int64)
	}
	if at <= 0 {
		return 0, nil, fmt.Errorf("reply is %T of %d values, want one that begins with a time", raw, len(values))
	}
	return at, values[1:], nil
}

// decodeEach decodes one verdict for each of the claims.
func decodeEach(raw any, claims int) ([]budget.Verdict, error) {
	verdicts, err := decode(raw)
	if err == nil && len(verdicts) != claims {
		return nil, fmt.Errorf("reply speaks of %d windows where %d were asked", len(verdicts), claims)
	}
	return verdicts, err
}

// decode turns a flat reply of three integers per window into at least one verdict. It trusts nothing: the
// reply may come from a proxy, a module or another version of the script.
func decode(raw any) ([]budget.Verdict, error) {
	values, ok := raw.([]any)
	if !ok || len(values) == 0 || len(values)%3 != 0 {
		return nil, fmt.Errorf("reply is %T of %d values, want an array of three integers a window",
			raw, len(values))
	}
	verdicts := make([]budget.Verdict, len(values)/3)
	for i := range verdicts {
		allowed, ok1 := values[3*i].(int64)
		count, ok2 := values[3*i+1].(int64)
		retry, ok3 := values[3*i+2].(int64)
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("reply for window %d is (%T, %T, %T), want three integers",
				i+1, values[3*i], values[3*i+1], values[3*i+2])
		}
		tooLarge := allowed == 0 && retry == -1
		if tooLarge {
			retry = 0
		}
		if allowed != 0 && allowed != 1 || count < 0 || retry < 0 || retry > maxRetryMS ||
			(allowed == 0) != (retry > 0 || tooLarge) {
			return nil, fmt.Errorf("reply for window %d is (%d, %d, %d), which is no decision",
				i+1, allowed, count, retry)
		}
		verdicts[i] = budget.Verdict{
			Allowed:    allowed == 1,
			Used:       int(count),
			RetryAfter: time.Duration(retry) * time.Millisecond,
			TooLarge:   tooLarge,
		}
	}
	return verdicts, nil
}

// maxRetryMS is the longest time.Duration in milliseconds.
const maxRetryMS = int64(1<<63-1) / int64(time.Millisecond)

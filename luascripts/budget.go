package luascripts

import "time"

// Budget is a number of requests per window, with its script arguments made once, so that a budget
// which is known at start costs nothing per call. Make it with NewBudget; the zero value is not
// usable.
type Budget struct {
	limit  int
	window time.Duration

	// The arguments as they are sent.
	windowMS, limitArg, ttlS any
}

// NewBudget returns the budget of limit requests per window. The caller has checked that the window
// is a whole number of seconds, at least one. A limit of 0 or less admits nothing.
func NewBudget(limit int, window time.Duration) Budget {
	return Budget{
		limit:    limit,
		window:   window,
		windowMS: window.Milliseconds(),
		limitArg: max(0, limit), // one far below zero would not be an index to Redis
		ttlS:     int64(window/time.Second) + int64(slack/time.Second),
	}
}

// Limit returns the requests per window.
func (b Budget) Limit() int { return b.limit }

// Window returns the length of the window.
func (b Budget) Window() time.Duration { return b.window }

// Package chaos is a run of the middleware through every fault that its Redis may have: each is injected once
// while three Gin services, one for each failure policy, serve several users without pause.
//
//	cd ginlimit_test/chaos
//	go test -race .                                      # all faults
//	go test -run TestChaos -table table.md .             # the tables of docs/failures.md, in one
//	go test -run 'TestChaos/hung' .                      # one fault, or all whose name matches
//
// For each fault it asserts, and shows in the table:
//
//   - every answer is one of the policy's: never a 500, never a 429 that no limiter decided, never the text
//     of an error;
//   - in every true window of a user, what was admitted is at most the limit, plus the stated bound of that
//     fault;
//   - every decision ends within the limiter's timeout, on warm connections and on cold ones, and takes no
//     time once the circuit breaker is open;
//   - limits are enforced again soon after the fault;
//   - no goroutine is left.
//
// It is a module of its own, since it takes minutes and go test ./... should not. It needs redis-server 7 on
// PATH; see package redistest.
package chaos

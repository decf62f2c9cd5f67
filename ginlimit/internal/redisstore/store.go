// Package redisstore decides claims on Redis. The store turns claims into one script call and its reply into
// verdicts. Below it is one method that runs a script; a deadline, groups and a circuit breaker decorate it.
package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/luascripts"
)

// slack is how much longer than its window a key lives after its last admission.
const slack = time.Second

// leaseMS is budget.LeaseTime as a script argument.
const leaseMS = int64(budget.LeaseTime / time.Millisecond)

// Store is a budget.Store on Redis. Every method is one script execution.
type Store struct {
	scripts   runner
	clock     func() time.Time // nil = the server's
	oneServer bool             // one server has all keys
	numbers   knownNumbers
	breakers  *breakers
	groups    *groups // nil: every decision is sent alone
}

// New returns a store that runs its scripts through rdb. A nil clock is the server's, one for all processes.
// If oneServer, one server has all keys, and requests at the same time are decided in one script call; see
// OneServer. A call ends at its context's deadline even if rdb does not heed it; see HeedsDeadlines.
func New(rdb redis.Scripter, clock func() time.Time, oneServer bool) *Store {
	var scripts runner = client{rdb}
	if heeds, _ := HeedsDeadlines(rdb); !heeds {
		scripts = deadline{scripts}
	}
	s := &Store{clock: clock, oneServer: oneServer}
	if oneServer {
		s.groups = newGroups(scripts)
		scripts = s.groups
	}
	s.breakers = newBreakers(scripts, nodesOf(rdb))
	s.scripts = s.breakers
	return s
}

// Admit runs sliding_window.lua if all claims are logs; such decisions may share a script call with others.
// Otherwise it runs admit.lua. O(log N) for N requests in a window.
//
// While a Redis Cluster moves the slot of the keys, it may answer TRYAGAIN to a script over several of them.
// Logs are then decided one by one, which works.
func (s *Store) Admit(ctx context.Context, id string, claims []budget.Claim) (
	[]budget.Verdict, int64, error,
) {
	if !allLogs(claims) {
		return s.admitForms(ctx, id, claims)
	}
	verdicts, err := s.admitLogs(ctx, id, claims)
	if slotMoves(err) && len(claims) > 1 {
		verdicts, err = s.admitEach(ctx, id, claims)
	}
	return verdicts, 0, err
}

// allLogs reports whether all claims are logs that take one entry.
func allLogs(claims []budget.Claim) bool {
	for _, c := range claims {
		if c.Form() != budget.Log || c.Cost > 1 {
			return false
		}
	}
	return true
}

// costOf is the cost of a claim as a script argument.
func costOf(c budget.Claim) int {
	if c.Form() == budget.Log {
		return c.Entries()
	}
	return c.Cost
}

func (s *Store) admitLogs(ctx context.Context, id string, claims []budget.Claim) ([]budget.Verdict, error) {
	keys, args := newCall(claims, 2+3*len(claims))
	args = append(args, s.now())
	for i, claim := range claims {
		n := s.numbers.of(claim.Budget)
		args = append(args, n.windowMS, n.limit)
		if i == 0 {
			args = append(args, id)
		}
		args = append(args, n.ttl)
	}
	raw, err := s.scripts.run(ctx, luascripts.SlidingWindow, keys, args)
	if err != nil {
		return nil, fmt.Errorf("admit: %w", err)
	}
	verdicts, err := decodeAdmission(raw, len(claims))
	if err != nil {
		return nil, fmt.Errorf("admit: %w", err)
	}
	return verdicts, nil
}

func (s *Store) admitForms(ctx context.Context, id string, claims []budget.Claim) (
	[]budget.Verdict, int64, error,
) {
	keys, args := newCall(claims, 2+5*len(claims))
	args = append(args, s.now(), id)
	for _, claim := range claims {
		n := s.numbers.of(claim.Budget)
		args = append(args, n.form, n.windowMS, n.limit, costOf(claim), n.ttl)
	}
	raw, err := s.scripts.run(ctx, luascripts.AdmitScript, keys, args)
	if err != nil {
		return nil, 0, fmt.Errorf("admit: %w", err)
	}
	at, rest, err := decodeTime(raw)
	if err != nil {
		return nil, 0, fmt.Errorf("admit: %w", err)
	}
	verdicts, err := decodeAdmission(rest, len(claims))
	if err != nil {
		return nil, 0, fmt.Errorf("admit: %w", err)
	}
	return verdicts, at, nil
}

// slotMoves reports whether a Cluster could not run a script over several keys because their slot is moving.
// A client that has used up its repeats on both nodes may end with the answer of either.
func slotMoves(err error) bool {
	return err != nil && (redis.IsTryAgainError(err) || redis.HasErrorPrefix(err, "ASK "))
}

// admitEach decides claim by claim. Until what a rejected request took is given back, a shorter window may
// reject another request of that owner.
func (s *Store) admitEach(ctx context.Context, id string, claims []budget.Claim) ([]budget.Verdict, error) {
	verdicts := make([]budget.Verdict, 0, len(claims))
	for i := range claims {
		one, err := s.admitLogs(ctx, id, claims[i:i+1])
		verdicts = append(verdicts, one...)
		if err == nil && one[0].Allowed {
			continue
		}
		if i > 0 {
			taken := budget.Admission{ID: id, Claims: claims[:i]}
			if failed := s.Finish(ctx, taken, nil); err == nil && failed != nil {
				return nil, failed
			}
		}
		if err != nil {
			return nil, err
		}
		break
	}
	return verdicts, nil
}

// Peek runs peek.lua. O(log N) a window. If a slot moves, it runs one call per claim.
func (s *Store) Peek(ctx context.Context, claims []budget.Claim) ([]budget.Verdict, error) {
	verdicts, err := s.peek(ctx, claims)
	if !slotMoves(err) || len(claims) == 1 {
		return verdicts, err
	}
	verdicts = nil
	for i := range claims {
		one, err := s.peek(ctx, claims[i:i+1])
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, one...)
	}
	return verdicts, nil
}

func (s *Store) peek(ctx context.Context, claims []budget.Claim) ([]budget.Verdict, error) {
	keys, args := newCall(claims, 1+3*len(claims))
	args = append(args, s.now())
	for _, claim := range claims {
		n := s.numbers.of(claim.Budget)
		args = append(args, n.form, n.windowMS, n.limit)
	}
	raw, err := s.scripts.run(ctx, luascripts.PeekScript, keys, args)
	if err != nil {
		return nil, fmt.Errorf("peek: %w", err)
	}
	verdicts, err := decodeEach(raw, len(claims))
	if err != nil {
		return nil, fmt.Errorf("peek: %w", err)
	}
	return verdicts, nil
}

// Finish runs finish.lua. O(log N) a window. If a slot moves, logs are finished one by one.
func (s *Store) Finish(ctx context.Context, a budget.Admission, used []int) error {
	err := s.finish(ctx, a, used)
	if !slotMoves(err) || len(a.Claims) == 1 || !allLogs(a.Claims) {
		return err
	}
	for i := range a.Claims {
		one := budget.Admission{ID: a.ID, Claims: a.Claims[i : i+1]}
		if used == nil {
			err = s.finish(ctx, one, nil)
		} else {
			err = s.finish(ctx, one, used[i:i+1])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) finish(ctx context.Context, a budget.Admission, used []int) error {
	keys, args := newCall(a.Claims, 3+5*len(a.Claims))
	args = append(args, s.now(), a.ID, a.At)
	for i, claim := range a.Claims {
		n, stays := s.numbers.of(claim.Budget), 0
		if used != nil {
			stays = used[i]
		}
		args = append(args, n.form, n.windowMS, costOf(claim), stays, n.ttl)
	}
	if _, err := s.scripts.run(ctx, luascripts.FinishScript, keys, args); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	return nil
}

// renewAtOnce bounds the leases of one script call, so that it takes no longer than a group.
const renewAtOnce = 100

// Renew runs renew.lua: one call for many leases if all keys are on one server, otherwise one for each key.
// It goes on after an error, and returns the first.
func (s *Store) Renew(ctx context.Context, leases []budget.Held) error {
	var first error
	if !s.oneServer {
		leases = slices.SortedFunc(
			slices.Values(leases),
			func(a, b budget.Held) int { return strings.Compare(a.Key, b.Key) },
		)
	}
	for rest := leases; len(rest) > 0; {
		n := min(renewAtOnce, len(rest))
		if !s.oneServer {
			n = 1
			for n < len(rest) && n < renewAtOnce && rest[n].Key == rest[0].Key {
				n++
			}
		}
		if err := s.renew(ctx, rest[:n]); err != nil && first == nil {
			first = err
		}
		rest = rest[n:]
	}
	return first
}

func (s *Store) renew(ctx context.Context, leases []budget.Held) error {
	keys, args := make([]string, len(leases)), make([]any, 2, 2+len(leases))
	args[0], args[1] = s.now(), leaseMS
	for i, l := range leases {
		keys[i], args = l.Key, append(args, l.ID)
	}
	if _, err := s.scripts.run(ctx, luascripts.RenewScript, keys, args); err != nil {
		return fmt.Errorf("renew: %w", err)
	}
	return nil
}

// Close runs close.lua.
func (s *Store) Close(ctx context.Context, key string, d time.Duration) error {
	args := []any{max(1, d.Milliseconds())}
	if _, err := s.scripts.run(ctx, luascripts.CloseScript, []string{key}, args); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// Reset runs reset.lua. If a slot moves, it deletes key by key: the longer windows are cleared later.
func (s *Store) Reset(ctx context.Context, keys []string) error {
	err := s.reset(ctx, keys)
	if !slotMoves(err) || len(keys) == 1 {
		return err
	}
	for i := range keys {
		if err := s.reset(ctx, keys[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) reset(ctx context.Context, keys []string) error {
	if _, err := s.scripts.run(ctx, luascripts.ResetScript, keys, nil); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	return nil
}

// now is the scripts' argument now_ms; empty means the server's clock.
func (s *Store) now() string {
	if s.clock == nil {
		return ""
	}
	return strconv.FormatInt(s.clock().UnixMilli(), 10)
}

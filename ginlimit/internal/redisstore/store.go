// Package redisstore decides claims on Redis. The store turns claims into one script call and its reply
// into verdicts; below it is one method, run a script, which a deadline and a circuit breaker decorate.
package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
	"github.com/gin-tiers/ratelimit/luascripts"
)

// slack is how much longer than its window a key lives after its last admission.
const slack = time.Second

// Store is a budget.Store on Redis. Every method is one script execution.
type Store struct {
	scripts runner
	clock   func() time.Time // nil = the server's
	numbers knownNumbers
}

// New returns a store that runs its scripts through rdb. A nil clock is the server's, one for all
// processes. Grouped decides requests that come at the same time in one script execution, for keys that are
// all on one server; see OneServer. A call ends at its context's deadline, whatever rdb does; see
// HeedsDeadlines.
func New(rdb redis.Scripter, clock func() time.Time, grouped bool) *Store {
	var scripts runner = client{rdb}
	if heeds, _ := HeedsDeadlines(rdb); !heeds {
		scripts = deadline{scripts}
	}
	if grouped {
		scripts = newGroups(scripts)
	}
	return &Store{scripts: newBreakers(scripts, nodesOf(rdb)), clock: clock}
}

// Admit runs sliding_window.lua. O(log N) for N requests in a window.
//
// A Redis Cluster that moves the slot of the keys may answer TRYAGAIN to a script over several of them
// for as long as the move stands. The claims are then decided one by one, which works.
func (s *Store) Admit(ctx context.Context, id string, claims []budget.Claim) ([]budget.Verdict, error) {
	verdicts, err := s.admit(ctx, id, claims)
	if slotMoves(err) && len(claims) > 1 {
		return s.admitEach(ctx, id, claims)
	}
	return verdicts, err
}

func (s *Store) admit(ctx context.Context, id string, claims []budget.Claim) ([]budget.Verdict, error) {
	c := newCall(claims, 2+3*len(claims))
	c.args = append(c.args, s.now())
	for i, claim := range claims {
		n := s.numbers.of(claim.Budget)
		c.args = append(c.args, n.windowMS, n.limit)
		if i == 0 {
			c.args = append(c.args, id)
		}
		c.args = append(c.args, n.ttl)
	}
	raw, err := s.scripts.run(ctx, luascripts.SlidingWindow, c.keys, c.args)
	if err != nil {
		return nil, fmt.Errorf("admit: %w", err)
	}
	verdicts, err := decodeAdmission(raw, len(claims))
	if err != nil {
		return nil, fmt.Errorf("admit: %w", err)
	}
	return verdicts, nil
}

// slotMoves tells whether a Cluster could not run a script over several keys since their slot is on the move.
// A client that has used up its repeats between both nodes may end at either one's answer.
func slotMoves(err error) bool {
	return redis.IsTryAgainError(err) || redis.HasErrorPrefix(err, "ASK ")
}

// admitEach decides claim by claim. Until what a rejected request took is given back, another request of
// that owner may be rejected by a shorter window.
func (s *Store) admitEach(ctx context.Context, id string, claims []budget.Claim) ([]budget.Verdict, error) {
	verdicts := make([]budget.Verdict, 0, len(claims))
	for i := range claims {
		one, err := s.admit(ctx, id, claims[i:i+1])
		verdicts = append(verdicts, one...)
		if err == nil && one[0].Allowed {
			continue
		}
		if i > 0 {
			if failed := s.GiveBack(ctx, id, claims[:i]); err == nil && failed != nil {
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

// Peek runs peek.lua. O(log N) a window. Where a slot moves, it asks one by one, as Admit does.
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
	c := newCall(claims, 1+2*len(claims))
	c.args = append(c.args, s.now())
	for _, claim := range claims {
		n := s.numbers.of(claim.Budget)
		c.args = append(c.args, n.windowMS, n.limit)
	}
	raw, err := s.scripts.run(ctx, luascripts.PeekScript, c.keys, c.args)
	if err != nil {
		return nil, fmt.Errorf("peek: %w", err)
	}
	verdicts, err := decodeEach(raw, len(claims))
	if err != nil {
		return nil, fmt.Errorf("peek: %w", err)
	}
	return verdicts, nil
}

// GiveBack runs give_back.lua. O(log N) a window. Where a slot moves, it goes one by one.
func (s *Store) GiveBack(ctx context.Context, id string, claims []budget.Claim) error {
	err := s.giveBack(ctx, id, claims)
	if !slotMoves(err) || len(claims) == 1 {
		return err
	}
	for i := range claims {
		if err := s.giveBack(ctx, id, claims[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) giveBack(ctx context.Context, id string, claims []budget.Claim) error {
	c := newCall(claims, 2+len(claims))
	c.args = append(c.args, s.now(), id)
	for _, claim := range claims {
		c.args = append(c.args, s.numbers.of(claim.Budget).windowMS)
	}
	if _, err := s.scripts.run(ctx, luascripts.GiveBackScript, c.keys, c.args); err != nil {
		return fmt.Errorf("give back: %w", err)
	}
	return nil
}

// Reset runs reset.lua. Where a slot moves, it goes one by one: the longer windows are cleared later.
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

// now is the scripts' now_ms: empty for the server's clock.
func (s *Store) now() string {
	if s.clock == nil {
		return ""
	}
	return strconv.FormatInt(s.clock().UnixMilli(), 10)
}

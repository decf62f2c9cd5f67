package main

import (
	"context"
	"errors"
	"fmt"
)

// verify fails unless the row limits: of six calls of a new user, one after the other, three are
// admitted where the limit is three, and none after the first rejection. What looks fast because it
// does not limit would be found here.
func (b *bench) verify(ctx context.Context, r row) error {
	if len(r.windows) == 0 {
		return nil
	}
	trials := [][]int{{3, 100}}
	if len(r.windows) == 2 && !r.http { // a tier's day is never tighter than its minute
		trials = append(trials, []int{100, 3})
	}
	for _, limits := range trials {
		if err := b.control.FlushAll(ctx).Err(); err != nil {
			return err
		}
		if err := b.tryOut(ctx, r.withWindows(limits...)); err != nil {
			return fmt.Errorf("limits %v: %w", limits[:len(r.windows)], err)
		}
	}
	return nil
}

func (b *bench) tryOut(ctx context.Context, r row) (err error) {
	o, err := b.open(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	const calls, limit = 6, 3
	for call := range calls {
		allowed, err := o.workers[call%len(o.workers)](ctx, "new_user")
		if err != nil {
			return err
		}
		if want := call < limit; allowed != want {
			return fmt.Errorf("call %d of a new user: allowed %t, want %t", call+1, allowed, want)
		}
	}
	return nil
}

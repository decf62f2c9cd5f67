package request

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type key struct{}

// A context whose timer begins late is like one whose timer begins at once.
func TestALazyDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lazy := func(parent context.Context) (context.Context, context.CancelFunc) {
			l := &lazyDeadline{parent: parent, deadline: time.Now().Add(time.Second)}
			return l, l.cancel
		}
		ctx, cancel := lazy(context.WithValue(t.Context(), key{}, 1))
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		require.Equal(t, time.Now().Add(time.Second), deadline)
		require.Equal(t, 1, ctx.Value(key{}))
		below, stop := context.WithCancel(ctx)
		defer stop()
		require.NoError(t, ctx.Err())
		<-below.Done()
		require.Equal(t, deadline, time.Now())
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
		cancel()

		parent, leave := context.WithCancel(t.Context())
		ctx, cancel = lazy(parent)
		leave()
		<-ctx.Done()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		cancel()

		ctx, cancel = lazy(t.Context())
		cancel()
		cancel()
		<-ctx.Done()
		require.ErrorIs(t, ctx.Err(), context.Canceled, "also where nobody waited before")
	})
}

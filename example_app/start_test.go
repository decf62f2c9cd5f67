package main

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// R42: whatever the start waits for, such as a file on a disk that hangs, SIGTERM ends it at once.
func TestStopDuringTheStart(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	asked, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, func(string) string {
			asked <- struct{}{}
			<-release
			return ""
		}, io.Discard)
	}()
	<-asked
	require.Empty(t, ended)
	stop()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the start goes on")
	}
}

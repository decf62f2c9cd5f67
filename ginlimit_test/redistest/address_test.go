package redistest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever loses the race for a port is told so, and never takes the winner's answers for its own.
func TestStartOnATakenPort(t *testing.T) {
	t.Parallel()
	winner := Start(t)
	loser := &Server{Addr: winner.Addr, tb: t, dir: t.TempDir()}
	require.NoError(t, os.WriteFile(loser.file("redis.conf"), nil, 0o600))
	require.ErrorIs(t, loser.start(lookPath(t)), errEnded)
	require.ErrorContains(t, winner.ready(loser.PID()), "answered by process")
}

func TestFreeAddrLeavesRoomForTheClusterBus(t *testing.T) {
	t.Parallel()
	for range 100 {
		addr := freeAddr(t)
		require.Regexp(t, `^127\.0\.0\.1:(1\d{4}|2[01]\d{3})$`, addr)
	}
}

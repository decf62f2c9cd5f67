package redisstore

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestHeedsDeadlines(t *testing.T) {
	patient := &redis.Options{ContextTimeoutEnabled: true}
	type wrapped struct{ *redis.Client }
	type opaque struct{ redis.Scripter }
	piped, err := redis.NewClient(patient).AutoPipeline()
	require.NoError(t, err)
	t.Cleanup(func() { _ = piped.Close() })
	cluster := func(heeds bool) redis.Scripter {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"x:1"}, ContextTimeoutEnabled: heeds})
	}
	for _, tt := range []struct {
		name         string
		rdb          redis.Scripter
		heeds, known bool
	}{
		{"a client that does", redis.NewClient(patient), true, true},
		{"the default client", redis.NewClient(&redis.Options{}), false, true},
		{"a Cluster client that does", cluster(true), true, true},
		{"the default Cluster client", cluster(false), false, true},
		{"the default Ring", redis.NewRing(&redis.RingOptions{}), false, true},
		{"a wrapper that shows its client", wrapped{redis.NewClient(patient)}, true, true},
		{"a wrapper that does not", opaque{redis.NewClient(patient)}, false, false},
		{"an AutoPipeliner", piped, false, true},
	} {
		heeds, known := HeedsDeadlines(tt.rdb)
		require.Equal(t, tt.heeds, heeds, tt.name)
		require.Equal(t, tt.known, known, tt.name)
	}
}

// A panic of a user's Scripter or clock is the request's, where Gin recovers it, and not the process's.
func TestAPanicBehindADeadlineIsTheCallers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, err := New(brokenScripter{how: runtime.Goexit}, nil, false).Admit(ctx, "m", minuteAndDay())
	require.ErrorIs(t, err, errNoReturn)
	require.PanicsWithValue(t, "broken", func() {
		_, _, _ = New(brokenScripter{how: func() { panic("broken") }}, nil, false).Admit(ctx, "m", minuteAndDay())
	})
}

type brokenScripter struct {
	redis.Scripter
	how func()
}

func (s brokenScripter) EvalSha(context.Context, string, []string, ...any) *redis.Cmd {
	s.how()
	return nil
}

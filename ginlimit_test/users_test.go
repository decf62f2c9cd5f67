package ginlimit_test

import (
	"context"
	"log"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
	"github.com/gin-tiers/ratelimit/tiers/watch"
)

// with returns a table with these users.
func with(t *testing.T, s *tiers.Store, u tiers.Users) *tiers.Store {
	t.Helper()
	s, err := s.WithUsers(u)
	require.NoError(t, err)
	return s
}

func override(perMinute, perDay int, until time.Time) tiers.Override {
	return tiers.Override{Limits: tiers.Limits{PerMinute: perMinute, PerDay: perDay}, Until: until}
}

// An override changes only the number that is compared, and ends by itself; the clock is the limiter's.
func TestOverrides(t *testing.T) {
	for _, store := range []string{"redis", "memory"} {
		t.Run(store, func(t *testing.T) {
			c := newClock()
			l := ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now))
			if store == "redis" {
				l = ginlimit.NewLimiter(redistest.Client(t), ginlimit.WithClock(c.now))
			}
			alice := override(4, 9, c.now().Add(30*time.Second))
			users := tiers.Users{Overrides: map[string]tiers.Override{"alice": alice}}
			a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(with(t, table(t, 2, 9), users))))
			require.Equal(t, "4 3 minute", a.as("alice").limits(t))
			require.Equal(t, "2 1 minute", a.as("bob").limits(t))
			for range 3 {
				require.Equal(t, http.StatusOK, a.as("alice").StatusCode)
			}
			require.Equal(t, http.StatusTooManyRequests, a.as("alice").StatusCode)

			c.advance(30 * time.Second)
			rejected := a.as("alice")
			require.Equal(t, http.StatusTooManyRequests, rejected.StatusCode)
			require.Equal(t, "2 0 minute", rejected.limits(t))
			c.advance(30 * time.Second) // the four of the override leave the minute, in the same keys
			require.Equal(t, "2 1 minute", a.as("alice").limits(t))
			left, err := l.Peek(t.Context(), "alice", 9, 24*time.Hour)
			require.NoError(t, err)
			require.Equal(t, 4, left.Remaining)
		})
	}
}

// A table that changes brings its users with it.
func TestLiveUsers(t *testing.T) {
	var src sourceOf
	src.Pointer.Store(table(t, 2, 9))
	a := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithLiveTiers(&src)))
	require.Equal(t, "2 1 minute", a.as("alice").limits(t))
	src.Pointer.Store(with(t, table(t, 2, 9), tiers.Users{Deny: []string{"alice"}}))
	require.Equal(t, http.StatusForbidden, a.as("alice").StatusCode)
	src.Pointer.Store(with(t, table(t, 2, 9), tiers.Users{Allow: []string{"alice"}}))
	for range 5 {
		require.Equal(t, http.StatusOK, a.as("alice").StatusCode)
	}
	src.Pointer.Store(table(t, 2, 9))
	require.Equal(t, "2 0 minute", a.as("alice").limits(t), "nothing was counted meanwhile")
}

// Whoever is allowed meets no budget of the table; whoever is denied costs Redis nothing. Both are observed.
func TestAllowedAndDenied(t *testing.T) {
	srv := redistest.Start(t)
	l := ginlimit.NewLimiter(srv.Client(t))
	var seen []string
	watch := ginlimit.ObserverFunc(func(_ context.Context, e ginlimit.Event) {
		seen = append(seen, e.Label()+" "+string(e.Tier)+" "+e.Decision.Name())
	})
	users := tiers.Users{Allow: []string{"probe"}, Deny: []string{"mallory"}}
	a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(with(t, table(t, 1, 9), users)),
		ginlimit.WithObserver(watch)))
	for range 3 {
		allowed := a.as("probe")
		require.Equal(t, http.StatusOK, allowed.StatusCode)
		require.Empty(t, allowed.Header.Get(ginlimit.HeaderLimit))
	}
	denied := a.as("mallory")
	require.Equal(t, http.StatusForbidden, denied.StatusCode)
	require.Equal(t, "user_denied", denied.apiError(t).Code)
	require.Equal(t, "permission_error", denied.apiError(t).Type)
	require.Equal(t, "no-store", denied.Header.Get("Cache-Control"))
	require.Empty(t, denied.Header.Get(ginlimit.HeaderLimit)+denied.Header.Get(ginlimit.HeaderRetryAfter))
	require.EqualValues(t, 3, a.Handled.Load())
	require.Zero(t, srv.Calls(t, "evalsha")+srv.Calls(t, "eval"))
	require.Equal(t, []string{"admitted free ", "admitted free ", "admitted free ", "denied free "}, seen)

	require.Equal(t, http.StatusOK, a.as("alice").StatusCode)
	require.Equal(t, http.StatusTooManyRequests, a.as("alice").StatusCode)
}

// A table of a scope lists users for its own budgets; a denial on any refuses. What was taken goes back.
func TestUsersOfScopes(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	api := with(t, table(t, 3, 9), tiers.Users{Deny: []string{"mallory"}})
	images := with(t, table(t, 1, 9), tiers.Users{Allow: []string{"alice"}, Deny: []string{"eve"}})
	outer := ginlimit.New(l.Scope("outer"), resolver, ginlimit.WithTiers(table(t, 5, 9)))
	a := serve(t, outer,
		ginlimit.New(l, resolver, ginlimit.WithTiers(api), ginlimit.WithScope("images", images)))
	require.Equal(t, "3 2 minute", a.as("alice").limits(t))
	require.Equal(t, "3 1 minute", a.as("alice").limits(t))
	require.Equal(t, "1 0 minute", a.as("bob").limits(t))
	for _, user := range []string{"mallory", "eve"} {
		require.Equal(t, http.StatusForbidden, a.as(user).StatusCode)
		left, err := l.Scope("outer").Peek(t.Context(), user, 5, time.Minute)
		require.NoError(t, err)
		require.Equal(t, 5, left.Remaining, user)
	}
}

// The same holds of the subjects of a WithScopeFor, and of addresses.
func TestUsersOfOtherSubjects(t *testing.T) {
	organisation := ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
		return ginlimit.Subject{UserID: c.GetHeader("Org")}, nil
	})
	orgs := with(t, table(t, 2, 9), tiers.Users{
		Overrides: map[string]tiers.Override{"acme": override(5, 9, time.Now().Add(time.Hour))},
		Deny:      []string{"ltd"},
	})
	l := ginlimit.NewMemoryLimiter()
	a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 8, 9)),
		ginlimit.WithScopeFor("org", orgs, organisation)))
	require.Equal(t, "5 4 minute", a.as("alice", "Org", "acme").limits(t))
	require.Equal(t, "2 1 minute", a.as("alice", "Org", "other").limits(t))
	require.Equal(t, http.StatusForbidden, a.as("alice", "Org", "ltd").StatusCode)

	addresses := with(t, table(t, 8, 9), tiers.Users{Deny: []string{"ip/127.0.0.1"}})
	byAddress := serve(t, ginlimit.New(l, ginlimit.ByClientIP(tiers.Free), ginlimit.WithTiers(addresses)))
	require.Equal(t, http.StatusForbidden, byAddress.as("alice").StatusCode)
	named := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(addresses)))
	require.Equal(t, http.StatusOK, named.as("ip/127.0.0.1").StatusCode, "a user of that name is no address")
}

// In shadow mode a denial is told and refuses nobody. The kill switch lets everybody pass.
func TestDenialsThatDoNotCount(t *testing.T) {
	logs := captureLogs(t)
	denying := ginlimit.WithTiers(with(t, table(t, 2, 9), tiers.Users{Deny: []string{"alice"}}))
	var seen []ginlimit.Outcome
	watch := ginlimit.ObserverFunc(func(_ context.Context, e ginlimit.Event) { seen = append(seen, e.Outcome) })
	a := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, denying, ginlimit.WithShadow(),
		ginlimit.WithObserver(watch)))
	passed := a.as("alice")
	require.Equal(t, http.StatusOK, passed.StatusCode)
	require.Equal(t, "denied", passed.Header.Get(ginlimit.HeaderShadow))
	require.Empty(t, passed.Header.Get(ginlimit.HeaderLimit), "nothing was decided")
	require.Empty(t, a.as("bob").Header.Get(ginlimit.HeaderShadow))
	require.Equal(t, []ginlimit.Outcome{ginlimit.ShadowRejected, ginlimit.Admitted}, seen)
	require.Equal(t, 1, strings.Count(logs.String(), "would have been"))
	require.Contains(t, logs.String(), "window=denied")

	l := ginlimit.NewMemoryLimiter()
	l.SetDisabled(true)
	a = serve(t, ginlimit.New(l, resolver, denying))
	require.Equal(t, http.StatusOK, a.as("alice").StatusCode)
}

// A number that no option decides is an error of an override, too.
func TestOverrideThatNothingDecides(t *testing.T) {
	o := override(1, 1, time.Now())
	o.SpendPerDay = 5
	s := with(t, table(t, 2, 9), tiers.Users{Overrides: map[string]tiers.Override{"alice": o}})
	require.Equal(t,
		`ginlimit: New: the override of "alice" has spend_per_day, which nothing decides; add WithUsage`,
		panicOf(func() { ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithTiers(s)) }))
}

// watchTiers is the code of docs/tiers.md.
func watchTiers(ctx context.Context, limiter *ginlimit.Limiter) gin.HandlerFunc {
	file, err := watch.Open("tiers.yaml") // package tiers/watch
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := file.Watch(ctx, nil); err != nil { // nil: changes go to the log
			log.Print("tiers.yaml cannot be watched: ", err)
		}
	}()
	limited := ginlimit.New(limiter, resolver, ginlimit.WithLiveTiers(file), ginlimit.WithAtomicWindows())
	return limited
}

// The tier file and the code of docs/tiers.md do what that page says.
func TestPageOfTierFiles(t *testing.T) {
	text := page(t, "docs/tiers.md")
	code := blocks(text, "go")
	require.Len(t, code, 1)
	require.Contains(t, withoutIndent(page(t, "ginlimit_test/users_test.go")), withoutIndent(code[0]))

	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("tiers.yaml", []byte(blocks(text, "yaml")[0]), 0o600))
	a := serve(t, watchTiers(t.Context(), ginlimit.NewMemoryLimiter()))
	for user, want := range map[string]int{"alice": 200, "bob": 200, "monitoring": 200, "mallory": 403} {
		require.Equal(t, want, a.as(user).StatusCode, user)
	}
	store, err := tiers.LoadFile("tiers.yaml")
	require.NoError(t, err)
	until := store.Users().Overrides["alice"].Until
	require.Equal(t, 100, store.LookupUser("alice", "free", until.Add(-time.Second)).PerMinute)
}

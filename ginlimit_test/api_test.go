package ginlimit_test

import (
	"context"
	"io"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/luascripts"
	"github.com/gin-tiers/ratelimit/tiers"
)

// The signatures that users compile against. A change here breaks them.
var (
	_ = tiers.Limits{PerMinute: 1, PerDay: 1}
	_ = []tiers.Tier{tiers.Free, tiers.Pro, tiers.Enterprise}

	_ func() *tiers.Store                                                 = tiers.Default
	_ func(tiers.Tier, map[tiers.Tier]tiers.Limits) (*tiers.Store, error) = tiers.NewStore
	_ func(io.Reader) (*tiers.Store, error)                               = tiers.Load
	_ func(string) (*tiers.Store, error)                                  = tiers.LoadFile
	_ func(*tiers.Store, tiers.Tier) tiers.Limits                         = (*tiers.Store).Lookup

	_ *redis.Script = luascripts.SlidingWindow

	_ func(redis.Scripter, ...ginlimit.LimiterOption) *ginlimit.Limiter = ginlimit.NewLimiter
	_ func(...ginlimit.LimiterOption) *ginlimit.Limiter                 = ginlimit.NewMemoryLimiter

	limiter *ginlimit.Limiter

	_ func(context.Context, string, int, time.Duration) (ginlimit.Decision, error) = limiter.Check
	_ func(context.Context, string, int, time.Duration) (ginlimit.Decision, error) = limiter.Peek
	_ func(context.Context, string, ...time.Duration) error                        = limiter.Reset
	_ func(string) *ginlimit.Limiter                                               = limiter.Scope
	_ func(bool)                                                                   = limiter.SetDisabled

	_ = ginlimit.Decision{Allowed: true, Limit: 1, Remaining: 1, RetryAfter: time.Second, Window: time.Minute,
		Budget: ""}

	_ func(ginlimit.Decision) int                   = ginlimit.Decision.RetryAfterSeconds
	_ func(func() time.Time) ginlimit.LimiterOption = ginlimit.WithClock
	_ func(func() bool) ginlimit.LimiterOption      = ginlimit.WithKillSwitch
	_ func() ginlimit.LimiterOption                 = ginlimit.WithHashTags

	_ = []error{ginlimit.ErrInvalidWindow, ginlimit.ErrInvalidUserID, ginlimit.ErrNoSubject}

	_ func(*ginlimit.Limiter, ginlimit.TierResolver, ...ginlimit.Option) gin.HandlerFunc = ginlimit.New

	_ = ginlimit.Subject{UserID: "", Tier: tiers.Free}

	_ ginlimit.TierResolver                                  = ginlimit.TierResolverFunc(nil)
	_ func(*gin.Context) (subject ginlimit.Subject, _ error) = ginlimit.TierResolverFunc(nil)

	_ func(string, string) ginlimit.TierResolver     = ginlimit.FromContext
	_ func(tiers.Tier) ginlimit.TierResolver         = ginlimit.ByClientIP
	_ func(string) string                            = ginlimit.HashedID
	_ func(*tiers.Store) ginlimit.Option             = ginlimit.WithTiers
	_ func(string, *tiers.Store) ginlimit.Option     = ginlimit.WithScope
	_ func() ginlimit.Option                         = ginlimit.WithAtomicWindows
	_ func(ginlimit.FailurePolicy) ginlimit.Option   = ginlimit.WithFailurePolicy
	_ func() ginlimit.FailurePolicy                  = ginlimit.FailClosed
	_ func() ginlimit.FailurePolicy                  = ginlimit.FailOpen
	_ func(*ginlimit.Limiter) ginlimit.FailurePolicy = ginlimit.FailLocal
	_ func(ginlimit.Observer) ginlimit.Option        = ginlimit.WithObserver
	_ func(...string) (redis.UniversalClient, error) = redisclient.New
)

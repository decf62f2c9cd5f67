package main

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/openai"
	"github.com/gin-tiers/ratelimit/tiers"
)

// limits are the two ways in which a request below /v1 is limited. Both count requests in the same windows.
type limits struct {
	asking gin.HandlersChain // of what asks a model: tokens, money and requests in progress, too
	other  gin.HandlersChain // of what does not, a list of models say
}

func newLimits(
	cfg config, limiter *ginlimit.Limiter, subject ginlimit.TierResolver, watch ginlimit.Observer,
) limits {
	options := []openai.Option{openai.WithPrices(cfg.prices), openai.WithMaxBody(cfg.maxBody)}
	// A failure of the provider is none of the caller's, and costs nothing.
	refund := ginlimit.WithRefundOn(func(c *gin.Context) bool {
		return c.Writer.Status() >= http.StatusInternalServerError
	})
	asking := []ginlimit.Option{
		ginlimit.WithLiveTiers(cfg.tiers), ginlimit.WithUsage(newEstimator(options)), ginlimit.WithConcurrency(),
	}
	if cfg.upstreamCap != nil {
		asking = append(asking, ginlimit.WithUpstream(*cfg.upstreamCap))
	}
	policy := cfg.failurePolicy.option()
	observe := ginlimit.WithObserver(watch)
	return limits{
		asking: gin.HandlersChain{
			ginlimit.New(limiter, subject, append(asking, ginlimit.WithAtomicWindows(), refund, policy, observe)...),
			meterIfCharged(cfg, limiter, openai.Meter(options...)),
		},
		other: gin.HandlersChain{
			ginlimit.New(limiter, subject, ginlimit.WithLiveTiers(&requestTiers{of: cfg.tiers}),
				ginlimit.WithAtomicWindows(), refund, policy, observe),
		},
	}
}

// meterIfCharged runs the meter for callers who have a budget of tokens or money, and for all where the
// provider's cap counts tokens. Others' requests and answers pass as they are.
func meterIfCharged(cfg config, limiter *ginlimit.Limiter, meter gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		tier, _ := c.Get(tierKey)
		name, _ := tier.(tiers.Tier)
		caller := ginlimit.Subject{UserID: countedAs(c.GetString(userKey)), Tier: name}
		l := limiter.LimitsOf(cfg.tiers.Store(), caller)
		if capsTokens(cfg.upstreamCap) || max(l.TokensPerMinute, l.TokensPerDay, l.TokensPerMonth) > 0 ||
			max(l.SpendPerDay, l.SpendPerMonth) > 0 {
			meter(c)
		}
	}
}

// estimator is openai's, but for requests that nothing can be said of: what has no body asks no model, and to
// a body that cannot be read readBody answers what is wrong with it.
type estimator struct{ within }

// within is an estimator that bounds what it reserves.
type within interface {
	ginlimit.Estimator
	EstimateWithin(c *gin.Context, most ginlimit.Usage) (ginlimit.Usage, error)
}

func newEstimator(options []openai.Option) estimator {
	return estimator{openai.Estimator(options...).(within)} // as its comment says
}

func (e estimator) EstimateWithin(c *gin.Context, most ginlimit.Usage) (ginlimit.Usage, error) {
	if c.Request.Body == nil || c.Request.Body == http.NoBody {
		return ginlimit.Usage{}, nil
	}
	u, err := e.within.EstimateWithin(c, most)
	if err != nil && c.Request.Context().Err() == nil {
		return ginlimit.Usage{}, nil // readBody meets the same error, and says it
	}
	return u, err
}

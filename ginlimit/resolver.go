package ginlimit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/tiers"
)

// ErrNoSubject is what a TierResolver returns, wrapped or not, when nobody is signed in. The
// middleware answers it with 401.
var ErrNoSubject = errors.New("ginlimit: nobody is signed in")

// Subject is who makes a request and on which tier. An empty UserID is nobody (401); an empty or
// unknown Tier gets the fallback tier's limits.
type Subject struct {
	UserID string
	Tier   tiers.Tier
}

// TierResolver tells who makes a request. It runs once for each request and limiter, on the
// request's goroutine, so it should not be slow. ErrNoSubject is answered with 401, any other error
// with 503; its text goes to the log and never to the client.
//
// UserID becomes part of a Redis key. Never make it a secret: see HashedID. One that begins with "ip/", and
// was not made by ByClientIP for this request, is counted as "ip%2F…", so that no user meets the callers
// from an address; likewise one that begins with "ip%" as "ip%25…". The limiter's own methods take ids as
// they are: Reset(ctx, "ip/203.0.113.7") is for the callers from there, Reset(ctx, "ip%2F203.0.113.7") for
// the user of that name.
type TierResolver interface {
	ResolveTier(c *gin.Context) (Subject, error)
}

// TierResolverFunc is a function that is a TierResolver.
type TierResolverFunc func(c *gin.Context) (Subject, error)

// ResolveTier calls f.
func (f TierResolverFunc) ResolveTier(c *gin.Context) (Subject, error) { return f(c) }

// FromContext resolves what an auth middleware stored in Gin's context: c.Set(userKey, id) and
// c.Set(tierKey, tier). The id is a string, an integer, a fmt.Stringer or a number of a JSON document, such
// as a numeric claim of a token: a json.Number that is whole, or a float that is whole and so small that no
// digits were lost (a float64 below 2^53, a float32 below 2^24). 8421 is one id in all of these forms.
// Missing, nil or empty is ErrNoSubject. The tier is a tiers.Tier or a string; missing or nil is the fallback
// tier. Anything else is an error that names the key, the type and the rule; it is logged once, not for every
// request.
func FromContext(userKey, tierKey string) TierResolver {
	badUser, badTier := &sync.Once{}, &sync.Once{}
	return TierResolverFunc(func(c *gin.Context) (Subject, error) {
		value, _ := c.Get(userKey)
		id, err := userIDOf(value)
		if err != nil {
			return Subject{}, misfitError{fmt.Errorf("ginlimit: user id under %q: %w", userKey, err), badUser}
		}
		if id == "" {
			return Subject{}, ErrNoSubject
		}
		value, _ = c.Get(tierKey)
		tier, err := tierOf(value)
		if err != nil {
			return Subject{}, misfitError{fmt.Errorf("ginlimit: tier under %q: %w", tierKey, err), badTier}
		}
		return Subject{UserID: id, Tier: tier}, nil
	})
}

// FirstOf asks the resolvers in order, until one knows who calls. One that finds nobody signed in
// (ErrNoSubject, or an empty UserID) passes the question on; any other error ends it, so that a look-up which
// is down turns no user into an anonymous caller. FromContext before ByClientIP limits users by their ids and
// everybody else by address. It panics on no resolver and on a nil one.
func FirstOf(resolvers ...TierResolver) TierResolver {
	if len(resolvers) == 0 {
		panic("ginlimit: FirstOf: no resolver")
	}
	for _, r := range resolvers {
		mustNotBeNil("FirstOf: resolver", r)
	}
	resolvers = slices.Clone(resolvers)
	return TierResolverFunc(func(c *gin.Context) (Subject, error) {
		for _, r := range resolvers {
			subject, err := r.ResolveTier(c)
			if nobody := errors.Is(err, ErrNoSubject) || err == nil && subject.UserID == ""; !nobody {
				return subject, err
			}
		}
		return Subject{}, ErrNoSubject
	})
}

// misfitError says that the auth middleware stores something that is no id or no tier. Every request may meet
// it until the program is changed, so it is logged once for a resolver.
type misfitError struct {
	error
	once *sync.Once
}

func (e misfitError) Unwrap() error { return e.error }

// shouldLog reports whether a resolver's error is to be logged: a misfit once, others as often as rate
// allows.
func shouldLog(err error, rate *logRate) bool {
	misfit, ok := errors.AsType[misfitError](err)
	if !ok {
		return rate.allow(time.Now())
	}
	first := false
	misfit.once.Do(func() { first = true })
	return first
}

func tierOf(value any) (tiers.Tier, error) {
	if tier, ok := value.(tiers.Tier); ok { // nearly always
		return tier, nil
	}
	if isNil(value) {
		return "", nil
	}
	if rv := reflect.ValueOf(value); rv.Kind() == reflect.String {
		return tiers.Tier(rv.String()), nil
	}
	return "", fmt.Errorf("%T is no tiers.Tier or other string", value)
}

// HashedID returns an id for resolvers that only know an API key: the hex SHA-256 of it, which is
// safe in a Redis key as long as the API key is random. A password or a short number could be
// guessed from it. HashedID("") is "", so that a caller without a key is nobody.
func HashedID(secret string) string {
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

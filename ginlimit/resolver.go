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

// ErrNoSubject is the error that a TierResolver returns, wrapped or not, if nobody is signed in. The
// middleware then answers 401.
var ErrNoSubject = errors.New("ginlimit: nobody is signed in")

// Subject is the caller of a request and the caller's tier. An empty UserID means nobody (401); an empty or
// unknown Tier gets the fallback tier's limits.
type Subject struct {
	UserID string
	Tier   tiers.Tier
}

// TierResolver returns the caller of a request. It runs once for each request and limiter, on the request's
// goroutine, so it should be fast. ErrNoSubject is answered with 401, any other error with 503; its text goes
// to the log and never to the client.
//
// UserID becomes part of a Redis key. Never use a secret: see HashedID. If an id begins with "ip/", and
// ByClientIP did not make it for this request, it is counted as "ip%2F…", so that no user shares a budget
// with the callers of an address. In the same way "ip%" becomes "ip%25…". The limiter's own methods take ids
// as they are: Reset(ctx, "ip/203.0.113.7") is for the callers of that address, Reset(ctx,
// "ip%2F203.0.113.7") for the user with that name.
type TierResolver interface {
	ResolveTier(c *gin.Context) (Subject, error)
}

// TierResolverFunc makes a TierResolver of a function.
type TierResolverFunc func(c *gin.Context) (Subject, error)

// ResolveTier calls f.
func (f TierResolverFunc) ResolveTier(c *gin.Context) (Subject, error) { return f(c) }

// FromContext resolves what an auth middleware stored in Gin's context: c.Set(userKey, id) and c.Set(tierKey,
// tier). The id is a string, an integer, a fmt.Stringer or a JSON number, such as a numeric claim of a token:
// a whole json.Number, or a whole float that is small enough to be exact (a float64 below 2^53, a float32
// below 2^24). 8421 is the same id in all of these forms. A missing, nil or empty id is ErrNoSubject. The
// tier is a tiers.Tier or a string; a missing or nil tier is the fallback tier. Anything else is an error
// that names the key, the type and the rule; it is logged once, not for every request.
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

// FirstOf asks the resolvers in order and returns the first subject. If a resolver finds nobody signed in
// (ErrNoSubject, or an empty UserID), the next one is asked. Any other error ends the search, so while the
// user store is down, a signed-in user is not treated as anonymous. FromContext before ByClientIP limits
// users by their ids and everybody else by address. It panics if there is no resolver or if one is nil.
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
			if !isNobody(subject, err) {
				return subject, err
			}
		}
		return Subject{}, ErrNoSubject
	})
}

// isNobody reports whether a resolver has found nobody signed in.
func isNobody(s Subject, err error) bool {
	return errors.Is(err, ErrNoSubject) || err == nil && s.UserID == ""
}

// misfitError says that the auth middleware stores something that is not an id or not a tier. Every request
// may meet it until the program is changed, so it is logged once per resolver.
type misfitError struct {
	error
	once *sync.Once
}

func (e misfitError) Unwrap() error { return e.error }

// shouldLog reports whether to log a resolver's error: a misfit once, others as often as rate allows.
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

// HashedID returns an id for resolvers that only know an API key: its hex SHA-256, which is safe in a Redis
// key if the API key is random. A password or a short number could be guessed from it. HashedID("") is "", so
// a caller without a key is nobody.
func HashedID(secret string) string {
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

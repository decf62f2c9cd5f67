package ginlimit

import "github.com/gin-tiers/ratelimit/tiers"

// LimitsOf returns the limits of a table that count for a subject now, by the limiter's clock, as the
// middleware decides by them: of an override that is not over, no limits where the user is allowed, and
// otherwise of the tier. They are what Usage asks for. Its id is as for Usage: of resolvers other than
// ByClientIP one that begins with "ip/" is "ip%2F…". It does not look at who is denied. It asks Redis
// nothing, allocates nothing, and is safe for concurrent use.
func (l *Limiter) LimitsOf(s *tiers.Store, subject Subject) tiers.Limits {
	return s.LookupUser(subject.UserID, subject.Tier, l.kill.now())
}

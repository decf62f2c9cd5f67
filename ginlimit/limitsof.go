package ginlimit

import "github.com/gin-tiers/ratelimit/tiers"

// LimitsOf returns the limits of a table that apply to a subject now, by the limiter's clock, as in the
// middleware: those of an override that has not ended, no limits for an allowed user, otherwise those of the
// tier. Pass them to Usage. The id is the one that Usage takes: if a resolver other than ByClientIP returns
// an id that begins with "ip/", write "ip%2F…". Deny lists are ignored. It does not call Redis, allocates
// nothing, and is safe for concurrent use.
func (l *Limiter) LimitsOf(s *tiers.Store, subject Subject) tiers.Limits {
	return s.LookupUser(subject.UserID, subject.Tier, l.kill.now())
}

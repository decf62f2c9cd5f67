package tiers

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Users are the exceptions of a table: users whose limits are not those of their tier. They are named by the
// id that the program uses. The zero value has no exceptions.
type Users struct {
	// Overrides are limits that replace those of the user's tier.
	Overrides map[string]Override
	// Allow are users without budgets of this table.
	Allow []string
	// Deny are users who are refused.
	Deny []string
}

// Override has the limits of one user until a given time. It replaces all request windows of the user's tier.
// It replaces the tier's budgets of tokens if it has one of tokens, and likewise those of spend and
// Concurrent; otherwise these stay. After that time the limits of the tier apply again, so nobody has to
// remember to remove it.
type Override struct {
	Limits
	// Until is required. In a file it is a time with a zone, as in RFC 3339.
	Until time.Time `yaml:"until" json:"until"`
}

// WithUsers returns the table with these users instead of its own. It fails if an override breaks the rules
// of [Limits] or has no end; if an id is longer than 256 bytes or breaks the rules of [NewStore] for names of
// tiers; and if an id is there twice, in one section or in two. Times are kept in UTC.
func (s *Store) WithUsers(u Users) (*Store, error) {
	if problems := u.problems(); len(problems) > 0 {
		return nil, joined(problems)
	}
	with := *s
	with.users = Users{maps.Clone(u.Overrides), slices.Sorted(slices.Values(u.Allow)),
		slices.Sorted(slices.Values(u.Deny))}
	for id, o := range with.users.Overrides {
		o.Until = o.Until.Round(0).UTC() // one value per point in time, so that tables can be compared
		with.users.Overrides[id] = o
	}
	return &with, nil
}

// Users returns a copy of the exceptions of the table.
func (s *Store) Users() Users {
	return Users{maps.Clone(s.users.Overrides), slices.Clone(s.users.Allow), slices.Clone(s.users.Deny)}
}

// LookupUser returns the limits of a user of tier t at a given time: those of an override that has not ended,
// no limits if the user is allowed, and otherwise those of Lookup. It ignores the deny list. It allocates
// nothing.
func (s *Store) LookupUser(user string, t Tier, at time.Time) Limits {
	if o, ok := s.users.Overrides[user]; ok && at.Before(o.Until) {
		return o.over(s.Lookup(t))
	}
	if has(s.users.Allow, user) {
		return Limits{PerMinute: Unlimited, PerDay: Unlimited}
	}
	return s.Lookup(t)
}

// over returns the limits of the override in place of a tier's.
func (o Override) over(tier Limits) Limits {
	l := o.Limits
	if l.TokensPerMinute == 0 && l.TokensPerDay == 0 && l.TokensPerMonth == 0 {
		l.TokensPerMinute, l.TokensPerDay = tier.TokensPerMinute, tier.TokensPerDay
		l.TokensPerMonth = tier.TokensPerMonth
	}
	if l.SpendPerDay == 0 && l.SpendPerMonth == 0 {
		l.SpendPerDay, l.SpendPerMonth = tier.SpendPerDay, tier.SpendPerMonth
	}
	if l.Concurrent == 0 {
		l.Concurrent = tier.Concurrent
	}
	return l
}

// Excepts reports whether a user has an override, even an ended one, or is allowed. For all other users
// LookupUser equals Lookup.
func (s *Store) Excepts(user string) bool {
	_, ok := s.users.Overrides[user]
	return ok || has(s.users.Allow, user)
}

// Denies reports whether a user is on the deny list.
func (s *Store) Denies(user string) bool { return has(s.users.Deny, user) }

func has(sorted []string, user string) bool {
	_, found := slices.BinarySearch(sorted, user)
	return found
}

// problems lists what is wrong, section by section and sorted by user.
func (u Users) problems() (problems []string) {
	overridden := slices.Sorted(maps.Keys(u.Overrides))
	first := make(map[string]string) // the section where an id was met first
	for _, list := range []struct {
		name string
		ids  []string
	}{{"overrides", overridden}, {"allow", u.Allow}, {"deny", u.Deny}} {
		for _, id := range list.ids {
			if rule := brokenID(id); rule != "" {
				problems = append(problems, list.name+": "+rule)
			}
			if before, again := first[id]; again {
				problems = append(problems, fmt.Sprintf("%s: %s is there already, in %s", list.name, show(id), before))
			}
			first[id] = list.name
		}
	}
	for _, id := range overridden {
		o, path := u.Overrides[id], "overrides."+show(id)+"."
		if o.Until.IsZero() {
			problems = append(problems, path+"until is missing")
		}
		for _, p := range o.Limits.problems() {
			problems = append(problems, path+p)
		}
	}
	return problems
}

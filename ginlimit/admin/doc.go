// Package admin lets operators see a user's budgets, reset them, and switch all limits off for a while, over
// HTTP. It has no authentication: mount it behind a middleware that does.
//
//	admin.Routes(router.Group("/admin", operatorsOnly), limiter, admin.WithTiers(table))
//
// The routes, below the group's path:
//
//	GET    /usage?user=ID&tier=TIER      what is left of every budget; without tier, of the fallback's
//	DELETE /usage?user=ID&window=WINDOW  deletes what the user took in these windows
//	GET    /kill-switch                  whether limits are off, why, and until when
//	PUT    /kill-switch                  {"on": true, "reason": "…", "expires_in": 900}, in seconds
//
// A user's id is the one that the resolver returned: "user_8421", "ip/203.0.113.7" of ginlimit.ByClientIP. If
// another resolver returned an id that begins with ip/, use ip%2F… instead.
//
// A window is minute, hour, day, month or a number of seconds, and may be repeated; without one all four are
// reset. A window is all its budgets: day also resets the tokens and the spend of the day. Requests in
// progress stay counted, and so do the counts of scopes: mount separate routes for those, by Routes with
// limiter.Scope(name).
//
// The kill switch needs a reason and an expiry, an hour at most unless WithMaxExpiry says otherwise. Then it
// turns off by itself. It is a switch of this process: other processes have their own. RATE_LIMIT_DISABLED is
// the switch for all.
//
// Every switch and reset is logged by slog, with who did it and, for the switch, why. All answers are JSON
// with Cache-Control: no-store; errors have the form of ginlimit's own.
package admin

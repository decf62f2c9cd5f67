// Package admin lets operators look at a user's budgets, reset them, and switch all limits off for a while,
// over HTTP. It authenticates nobody: mount it behind a middleware that does.
//
//	admin.Routes(router.Group("/admin", operatorsOnly), limiter, admin.WithTiers(table))
//
// The routes, below the group's path:
//
//	GET    /usage?user=ID&tier=TIER      what is left of every budget; without tier, of the fallback's
//	DELETE /usage?user=ID&window=WINDOW  forgets what the user took in these windows
//	GET    /kill-switch                  whether limits are off, why, and until when
//	PUT    /kill-switch                  {"on": true, "reason": "…", "expires_in": 900}, in seconds
//
// A user's id is the one that the resolver returned: "user_8421", "ip/203.0.113.7" of ginlimit.ByClientIP. An
// id of another resolver that begins so is counted as ip%2F…, and found under that.
//
// A window is minute, hour, day, month or a number of seconds, and may be repeated; without one all four are
// reset. Requests under way stay counted, and so does what scopes count: they have routes of their own, by
// Routes with limiter.Scope(name).
//
// The kill switch needs a reason and an expiry, an hour at most unless WithMaxExpiry says otherwise, and is
// off again by itself when that is over. It is a switch of this process. Where several serve, each has its
// own, and RATE_LIMIT_DISABLED is the one for all.
//
// Who switched or reset what, and why, is logged by slog. All answers are JSON and carry Cache-Control:
// no-store; errors have the shape of ginlimit's own.
package admin

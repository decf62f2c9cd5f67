// Package luascripts holds the Lua scripts that decide, one .lua file each.
//
// Each file begins with its contract: KEYS, ARGV, reply, units, complexity. A decision is one script call:
// one EVALSHA, and then one EVAL if the server does not know the script yet. Some scripts begin with preludes
// that they share: clock.lua reads the time, decide.lua decides exact logs, sums.lua keeps bounded windows.
package luascripts

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed clock.lua
var clock string

//go:embed decide.lua
var decide string

//go:embed sums.lua
var sums string

//go:embed sliding_window.lua
var slidingWindow string

//go:embed group.lua
var group string

//go:embed admit.lua
var admit string

//go:embed finish.lua
var finish string

//go:embed renew.lua
var renew string

//go:embed close.lua
var closeGate string

//go:embed peek.lua
var peek string

//go:embed reset.lua
var reset string

// The scripts. Hash returns the SHA-1 by which the server knows a script. They are safe for concurrent use.
var (
	SlidingWindow = redis.NewScript(clock + decide + slidingWindow) // sliding_window.lua
	GroupScript   = redis.NewScript(clock + decide + group)         // group.lua
	AdmitScript   = redis.NewScript(clock + decide + sums + admit)  // admit.lua
	FinishScript  = redis.NewScript(clock + sums + finish)          // finish.lua
	RenewScript   = redis.NewScript(clock + renew)                  // renew.lua
	CloseScript   = redis.NewScript(closeGate)                      // close.lua
	PeekScript    = redis.NewScript(clock + sums + peek)            // peek.lua
	ResetScript   = redis.NewScript(reset)                          // reset.lua
)

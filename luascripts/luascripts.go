// Package luascripts holds the Lua scripts that decide, one .lua file each.
//
// Each file opens with its contract: KEYS, ARGV, reply, units, complexity. A decision is one script
// execution: one EVALSHA, or one EVAL after it where the server does not know the script yet. What several
// scripts need is in preludes that stand in front of them: clock.lua reads the time, decide.lua decides
// exact logs, sums.lua keeps bounded windows.
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

// The scripts. Hash of each is the SHA-1 by which the server knows it. They are safe for concurrent use.
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

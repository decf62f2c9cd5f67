// Package luascripts holds the Lua scripts that decide, one .lua file each.
//
// Each file opens with its contract: KEYS, ARGV, reply, units, complexity. A decision is one script
// execution: one EVALSHA, or one EVAL after it where the server does not know the script yet. The scripts
// that read the time have clock.lua in front of them, and those that decide requests decide.lua too.
package luascripts

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

//go:embed clock.lua
var clock string

//go:embed decide.lua
var decide string

//go:embed sliding_window.lua
var slidingWindow string

//go:embed group.lua
var group string

//go:embed peek.lua
var peek string

//go:embed give_back.lua
var giveBack string

//go:embed reset.lua
var reset string

// The scripts. Hash of each is the SHA-1 by which the server knows it. They are safe for concurrent use.
var (
	SlidingWindow  = redis.NewScript(clock + decide + slidingWindow) // sliding_window.lua
	GroupScript    = redis.NewScript(clock + decide + group)         // group.lua
	PeekScript     = redis.NewScript(clock + peek)                   // peek.lua
	GiveBackScript = redis.NewScript(clock + giveBack)               // give_back.lua
	ResetScript    = redis.NewScript(reset)                          // reset.lua
)

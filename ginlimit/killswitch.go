package ginlimit

import (
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// DisabledEnv is the environment variable of the default kill switch. Its value is a boolean as
// strconv.ParseBool reads it. If it is unset, empty or anything else, the limits stay on.
const DisabledEnv = "RATE_LIMIT_DISABLED"

// killSwitch lets every call pass while its flag or its runtime setting is on. It logs a warning once a
// minute, so that nobody forgets it.
type killSwitch struct {
	flag     func() bool
	flagName string
	forced   atomic.Bool
	now      func() time.Time
	warned   *logRate
}

func newKillSwitch(flag func() bool, now func() time.Time) *killSwitch {
	k := &killSwitch{flag: flag, flagName: "WithKillSwitch", now: now, warned: newLogRate(time.Minute)}
	if flag == nil {
		k.flag, k.flagName = disabledByEnv, DisabledEnv
		if value := os.Getenv(DisabledEnv); value != "" {
			if _, err := strconv.ParseBool(value); err != nil {
				slog.Warn("ginlimit: kill switch is no boolean, so rate limits stay on",
					"variable", DisabledEnv, "value", value)
			}
		}
	}
	k.on()
	return k
}

// on reports whether everybody passes, and logs a warning if so.
func (k *killSwitch) on() bool {
	cause := k.flagName
	switch {
	case k.forced.Load():
		cause = "SetDisabled"
	case !k.flag():
		return false
	}
	if k.warned.allow(k.now()) {
		slog.Warn("ginlimit: kill switch is on, nobody is rate limited", "cause", cause)
	}
	return true
}

func (k *killSwitch) set(on bool) {
	k.forced.Store(on)
	k.on()
}

func disabledByEnv() bool {
	value := os.Getenv(DisabledEnv)
	if value == "" {
		return false // nearly always, and cheaper than ParseBool's error
	}
	on, err := strconv.ParseBool(value)
	return err == nil && on
}

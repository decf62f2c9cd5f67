package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

const (
	maxOrder  = 4 << 10 // bytes of a body
	maxReason = 200     // characters
)

// order is the body of PUT /kill-switch.
type order struct {
	On        *bool  `json:"on"`
	Reason    string `json:"reason"`
	ExpiresIn int64  `json:"expires_in"` // seconds
}

// setting is who has switched limits off, why, and until when.
type setting struct {
	reason, by string
	until      time.Time
	off        *time.Timer
}

// killSwitch keeps the limiter's kill switch on while a setting lasts. The zero value with a limiter is off.
type killSwitch struct {
	limiter *ginlimit.Limiter
	mu      sync.Mutex
	set     *setting // nil: not switched off by these routes
}

// turnOn switches all limits off until s ends. It replaces an earlier setting.
func (k *killSwitch) turnOn(s *setting, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget()
	k.set = s
	s.off = time.AfterFunc(d, func() { k.expire(s) })
	k.limiter.SetDisabled(true)
}

// turnOff switches limits on again, whether these routes or SetDisabled switched them off.
func (k *killSwitch) turnOff() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget()
	k.limiter.SetDisabled(false)
}

// expire ends a setting, unless another one has replaced it while the timer fired.
func (k *killSwitch) expire(s *setting) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.set != s {
		return
	}
	k.set = nil
	k.limiter.SetDisabled(false)
	slog.Warn("admin: kill switch is off again, its time is over", "reason", s.reason, "set_by", s.by)
}

func (k *killSwitch) forget() {
	if k.set != nil {
		k.set.off.Stop()
		k.set = nil
	}
}

// state is the answer to GET and PUT /kill-switch.
type state struct {
	Object    string     `json:"object"`
	On        bool       `json:"on"`
	Reason    *string    `json:"reason"`
	SetBy     *string    `json:"set_by"`
	ExpiresAt *time.Time `json:"expires_at"`
	ExpiresIn int        `json:"expires_in"` // seconds, rounded up; 0 if nothing expires
}

// state returns the present state. If something else switched the limits off, only On is known.
func (k *killSwitch) state() state {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := state{Object: "kill_switch", On: k.limiter.Disabled()}
	if s := k.set; s != nil {
		until := s.until.UTC().Truncate(time.Second)
		left := max(0, time.Until(s.until))
		now.Reason, now.SetBy, now.ExpiresAt = &s.reason, &s.by, &until
		now.ExpiresIn = int((left + time.Second - 1) / time.Second)
	}
	return now
}

func (r *routes) showKillSwitch(c *gin.Context) { c.JSON(http.StatusOK, r.kill.state()) }

func (r *routes) setKillSwitch(c *gin.Context) {
	o, ok := r.readOrder(c)
	if !ok {
		return
	}
	ctx, by := c.Request.Context(), r.actor(c)
	if !*o.On {
		r.kill.turnOff()
		slog.WarnContext(ctx, "admin: kill switch was turned off", "reason", o.Reason, "by", by)
		c.JSON(http.StatusOK, r.kill.state())
		return
	}
	d := time.Duration(o.ExpiresIn) * time.Second
	s := &setting{reason: o.Reason, by: by, until: time.Now().Add(d)}
	r.kill.turnOn(s, d)
	slog.WarnContext(ctx, "admin: kill switch was turned on", "reason", o.Reason, "by", by, "for", d)
	c.JSON(http.StatusOK, r.kill.state())
}

// readOrder checks all of a body, or answers 400.
func (r *routes) readOrder(c *gin.Context) (o order, ok bool) {
	dec := json.NewDecoder(http.MaxBytesReader(c.Writer, c.Request.Body, maxOrder))
	dec.DisallowUnknownFields()
	err := dec.Decode(&o)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	most := int64(r.maxExpiry / time.Second)
	switch {
	case err != nil:
		invalid(c, "", `Want a JSON object such as {"on": true, "reason": "incident 12", "expires_in": 900}.`)
	case o.On == nil:
		invalid(c, "on", "on is missing: want true or false.")
	case *o.On && strings.TrimSpace(o.Reason) == "":
		invalid(c, "reason", "The kill switch needs a reason.")
	case utf8.RuneCountInString(o.Reason) > maxReason || strings.ContainsFunc(o.Reason, unicode.IsControl):
		invalid(c, "reason", fmt.Sprintf("A reason is one line of at most %d characters.", maxReason))
	case *o.On && (o.ExpiresIn < 1 || o.ExpiresIn > most):
		invalid(c, "expires_in", fmt.Sprintf("expires_in is a number of seconds from 1 to %d.", most))
	default:
		return o, true
	}
	return order{}, false
}

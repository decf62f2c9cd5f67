package admin_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/admin"
)

const killSwitch = "/admin/kill-switch"

// The kill switch is off again by itself.
func TestKillSwitchExpires(t *testing.T) {
	log := captureLog(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, ginlimit.NewMemoryLimiter())
		off := `{"object":"kill_switch","on":false,"reason":null,"set_by":null,"expires_at":null,"expires_in":0}`
		require.JSONEq(t, off, s.send(t, "GET "+killSwitch, "").Body.String())

		began := time.Now()
		got := s.send(t, "PUT "+killSwitch, `{"on": true, "reason": "incident 12", "expires_in": 900}`)
		require.Equal(t, 200, got.Code, got.Body)
		require.JSONEq(t, `{"object":"kill_switch","on":true,"reason":"incident 12","set_by":"dana","expires_at":"`+
			began.Add(900*time.Second).UTC().Format(time.RFC3339)+`","expires_in":900}`, got.Body.String())
		require.Equal(t, []int{200, 200, 200, 200}, s.chats(t, "alice", 4))

		time.Sleep(899*time.Second + 500*time.Millisecond)
		require.Contains(t, s.send(t, "GET "+killSwitch, "").Body.String(), `"expires_in":1`)
		require.Equal(t, []int{200, 200, 200}, s.chats(t, "alice", 3))
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		require.JSONEq(t, off, s.send(t, "GET "+killSwitch, "").Body.String())
		require.Equal(t, []int{200, 200, 429}, s.chats(t, "alice", 3))
	})
	require.Contains(t, log.String(), `turned on" reason="incident 12" by=dana for=15m0s`)
	require.Contains(t, log.String(), `its time is over" reason="incident 12" set_by=dana`)
}

// A later order takes the place of one before, shorter or longer, and off is off.
func TestKillSwitchOrders(t *testing.T) {
	log := captureLog(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, ginlimit.NewMemoryLimiter())
		on := func(seconds string) {
			t.Helper()
			body := `{"on": true, "reason": "r", "expires_in": ` + seconds + `}`
			require.Equal(t, 200, s.send(t, "PUT "+killSwitch, body).Code)
		}
		for _, step := range []struct {
			order string // seconds, or off
			after time.Duration
			on    bool
		}{
			{"60", 30 * time.Second, true},
			{"60", 40 * time.Second, true}, // the first would have ended
			{"5", 6 * time.Second, false},
			{"100", 50 * time.Second, true},
			{"off", 0, false},
			{"100", 60 * time.Second, true}, // the one before would have ended
			{"off", 0, false},
			{"off", 0, false},
		} {
			if step.order == "off" {
				require.Equal(t, 200, s.send(t, "PUT "+killSwitch, `{"on": false}`).Code)
			} else {
				on(step.order)
			}
			time.Sleep(step.after)
			synctest.Wait()
			require.Equal(t, step.on, s.limiter.Disabled(), step)
		}
	})
	require.Equal(t, 1, strings.Count(log.String(), "its time is over"))
}

// What another switch keeps on is told, and these routes do not end it.
func TestKillSwitchElsewhere(t *testing.T) {
	t.Setenv(ginlimit.DisabledEnv, "true")
	captureLog(t)
	s := newSite(t, ginlimit.NewMemoryLimiter())
	elsewhere := `{"object":"kill_switch","on":true,
		"reason":null,"set_by":null,"expires_at":null,"expires_in":0}`
	require.JSONEq(t, elsewhere, s.send(t, "GET "+killSwitch, "").Body.String())
	require.JSONEq(t, elsewhere, s.send(t, "PUT "+killSwitch, `{"on": false}`).Body.String())
}

func TestKillSwitchBadOrders(t *testing.T) {
	s := newSite(t, ginlimit.NewMemoryLimiter(), admin.WithMaxExpiry(10*time.Minute))
	for body, param := range map[string]string{
		``:      "",
		`[]`:    "",
		`true`:  "",
		`null`:  "on",
		`{}`:    "on",
		`{"on"`: "",
		`{"on": "true", "reason": "r", "expires_in": 5}`:                               "",
		`{"on": true, "reason": "r", "expires_in": 5} {}`:                              "",
		`{"on": true, "reason": "r", "expires_in": 5, "tier": "free"}`:                 "",
		`{"on": true, "reason": "r", "expires_in": "5m"}`:                              "",
		`{"on": true, "reason": "r", "expires_in": 1.5}`:                               "",
		`{"on": true, "reason": "` + strings.Repeat("r", 5000) + `", "expires_in": 5}`: "",
		`{"on": true, "expires_in": 5}`:                                                "reason",
		`{"on": true, "reason": " \t", "expires_in": 5}`:                               "reason",
		`{"on": true, "reason": "one\ntwo", "expires_in": 5}`:                          "reason",
		`{"on": true, "reason": "` + strings.Repeat("r", 201) + `", "expires_in": 5}`:  "reason",
		`{"on": true, "reason": "r"}`:                                                  "expires_in",
		`{"on": true, "reason": "r", "expires_in": 0}`:                                 "expires_in",
		`{"on": true, "reason": "r", "expires_in": -1}`:                                "expires_in",
		`{"on": true, "reason": "r", "expires_in": 601}`:                               "expires_in",
		`{"on": true, "reason": "r", "expires_in": 9223372036854775807}`:               "expires_in",
		`{"on": false, "reason": "` + strings.Repeat("é", 201) + `"}`:                  "reason",
	} {
		wantInvalid(t, s.send(t, "PUT "+killSwitch, body), param)
		require.False(t, s.limiter.Disabled(), body)
	}
	body := `{"on": true, "reason": "` + strings.Repeat("é", 200) + `", "expires_in": 600}`
	require.Equal(t, 200, s.send(t, "PUT "+killSwitch, body).Code)
	require.True(t, s.limiter.Disabled())
	require.Equal(t, 200, s.send(t, "PUT "+killSwitch, `{"on": false}`).Code)
}

package redisclient

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// read parses an address with one of go-redis's parsers, which knows the names and the forms of its settings.
func read[Options any](a *address, parse func(string) (Options, error)) (Options, error) {
	var none Options
	takes := func(name, value string) bool {
		probe := url.URL{Scheme: a.url.Scheme, Host: "localhost", RawQuery: url.Values{name: {value}}.Encode()}
		if a.isUnix() {
			probe.Host, probe.Path = "", "/socket"
		}
		_, err := parse(probe.String())
		return err == nil
	}
	settings := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(a.settings)) {
		values := a.settings[name]
		value := values[len(values)-1] // as go-redis does
		form := formOf(name, takes)
		switch {
		case form == "":
			return none, a.unknown(name)
		case !takes(name, value):
			return none, fmt.Errorf("%s: want %s", name, form)
		case form == formDuration && sign(value) == 0:
			continue // for go-redis 0 means no time-out or no time at all; here it counts as not given
		case name == "dial_timeout" && sign(value) < 0:
			return none, fmt.Errorf("%s: want a duration above 0; below, no connection would be made", name)
		case form == formNumber && !inRange(name, value):
			least, most := rangeOf(name)
			return none, fmt.Errorf("%s: want a whole number from %d to %d", name, least, most)
		}
		settings.Set(name, value)
	}
	whole := *a.url
	whole.RawQuery = settings.Encode()
	options, err := parse(whole.String())
	if err != nil {
		return none, errors.New("go-redis cannot read it") // its own error may hold a part of the address
	}
	return options, nil
}

const (
	formDuration = "a duration, such as 250ms, or whole seconds"
	formNumber   = "a whole number"
)

// rangeOf returns the numbers that a setting can have. Beyond them go-redis panics, or does nothing at all.
// For go-redis -1 switches retries and redirects off.
func rangeOf(name string) (least, most int) {
	if name == "max_retries" || name == "max_redirects" {
		least = -1
	}
	if strings.HasSuffix(name, "_buffer_size") { // in bytes
		return least, 1 << 30
	}
	return least, 1_000_000
}

func inRange(name, value string) bool {
	n, err := strconv.Atoi(value)
	least, most := rangeOf(name)
	return err != nil || least <= n && n <= most // an empty value is none
}

// formOf is the form of a setting's value, found by trying; "" means that the parser does not know the
// setting.
func formOf(name string, takes func(name, value string) bool) string {
	switch {
	case !takes(name, ""):
		return ""
	case takes(name, "text"):
		return "text"
	case takes(name, "1ms"):
		return formDuration
	case takes(name, "true"):
		return "true or false"
	}
	return formNumber
}

// sign is the sign of a duration, or 1 if value is not a duration.
func sign(value string) int {
	n, err := strconv.Atoi(value)
	if err != nil {
		var d time.Duration
		if d, err = time.ParseDuration(value); err == nil {
			n = int(max(-1, min(1, d)))
		}
	}
	if err != nil || n > 0 {
		return 1
	}
	return max(-1, n)
}

// unknown names a setting only if it cannot be a part of a password: in redis://:12?word@host the password is
// 12?word.
func (a *address) unknown(name string) error {
	isName := name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == "" && a.settings.Get(name) != ""
	switch {
	case name == "skip_verify" && !a.isTLS():
		return errors.New("skip_verify is for TLS, rediss://")
	case isName && (a.url.Hostname() != "" || a.isUnix()):
		return fmt.Errorf("unexpected option: %s", name)
	}
	return errors.New("unexpected option: a name behind the ? is no setting of go-redis for this kind of client")
}

// withAliases renames settings to the name that all of go-redis's parsers know.
func withAliases(settings url.Values) {
	for alias, name := range map[string]string{
		"idle_timeout": "conn_max_idle_time",
		"max_conn_age": "conn_max_lifetime",
	} {
		if values, ok := settings[alias]; ok {
			if !settings.Has(name) {
				settings[name] = values
			}
			settings.Del(alias)
		}
	}
}

// take moves the named settings to a separate address.
func (a *address) take(names ...string) *address {
	taken := &address{url: &url.URL{Scheme: a.url.Scheme, Host: "localhost"}, settings: url.Values{}}
	if a.isUnix() {
		taken.url.Scheme = "redis"
	}
	for _, name := range names {
		if values, ok := a.settings[name]; ok {
			taken.settings[name] = values
			a.settings.Del(name)
		}
	}
	return taken
}

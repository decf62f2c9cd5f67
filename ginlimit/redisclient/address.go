package redisclient

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// address is one address, taken apart: redis, rediss or unix, and the settings of its query.
//
// Errors about an address have texts of this package. Those of url.Parse and of go-redis repeat what they
// could not read, which may be a part of a password.
type address struct {
	url      *url.URL // without its query
	settings url.Values
}

var (
	errForm     = errors.New("want redis://host:port or host:port")
	errEncoding = errors.New("not a URL that can be parsed; is a special character in the user or the " +
		"password percent-encoded, such as %40 for @, %2F for / and %23 for #?")
)

func parseAddress(s string) (*address, error) {
	s = strings.TrimSpace(s)
	scheme, rest, found := strings.Cut(s, "://")
	if !found || strings.ContainsAny(scheme, "/?#") {
		scheme, rest = "redis", s
		if err := bare(s); err != nil {
			return nil, err
		}
	}
	known, err := schemeOf(scheme)
	if err != nil {
		return nil, err
	}
	authority, behind := cutAuthority(rest)
	lateAt := known != "unix" && strings.Contains(behind, "@") && !strings.Contains(authority, "@")
	if lateAt || strings.Contains(behind, "#") {
		return nil, errEncoding // the text after the # or the first / or ? belongs to the password
	}
	u, err := url.Parse(known + "://" + rest)
	if err != nil {
		if !strings.Contains(rest, "@") {
			return nil, errors.New("not a URL that can be parsed: " + rule)
		}
		return nil, errEncoding
	}
	settings, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("the settings behind the ? are not name=value&name=value, percent-encoded")
	}
	u.RawQuery = ""
	a := &address{url: u, settings: settings}
	if a.isUnix() {
		return a, a.checkSocket()
	}
	return a, a.checkHost()
}

const rule = "want redis://[user:password@]host:port[/db], with a port that is a number from 1 to 65535"

// bare checks an address without a scheme: host:port and what may follow.
func bare(s string) error {
	authority, _ := cutAuthority(s)
	if strings.Contains(authority, "@") {
		return errors.New("credentials need a scheme; want redis://user:password@host:port")
	}
	if host, port, err := net.SplitHostPort(authority); err != nil || host == "" || port == "" {
		return errForm
	}
	return nil
}

// schemeOf returns the go-redis scheme that a scheme means.
func schemeOf(scheme string) (string, error) {
	switch strings.ToLower(scheme) {
	case "redis", "valkey", "redis+tcp", "valkey+tcp":
		return "redis", nil
	case "rediss", "valkeys", "redis+tls", "valkey+tls", "redis+ssl", "valkey+ssl", "rediss+tls", "valkeys+tls":
		return "rediss", nil
	case "unix", "redis+unix", "valkey+unix", "redis+socket", "valkey+socket", "redis-socket":
		return "unix", nil
	case "redis-sentinel", "redis+sentinel", "valkey-sentinel", "valkey+sentinel":
		return "", fmt.Errorf("unknown scheme %q; NewSentinel takes Sentinels as redis://host:port", scheme)
	}
	if u, err := url.Parse(scheme + "://host"); err != nil || u.Scheme != strings.ToLower(scheme) {
		return "", errForm // it is not a scheme, but another part of the address
	}
	return "", fmt.Errorf("unknown scheme %q; want redis:// or valkey://, rediss:// or valkeys:// for TLS, "+
		"or unix:///path", scheme)
}

// cutAuthority cuts what follows the scheme into [user:password@]host:port and the rest.
func cutAuthority(s string) (authority, behind string) {
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

func (a *address) isUnix() bool { return a.url.Scheme == "unix" }
func (a *address) isTLS() bool  { return a.url.Scheme == "rediss" }

func (a *address) checkSocket() error {
	if a.url.Host != "" || strings.Trim(a.url.Path, "/ ") == "" {
		return errors.New("want unix:///path, with three slashes before the path of the socket")
	}
	return nil
}

func (a *address) checkHost() error {
	if strings.ContainsAny(a.url.Hostname(), ",;") {
		return errors.New("several hosts in one address; give each address by itself")
	}
	if port := a.url.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New(rule)
		}
	}
	db, err := a.db()
	if err == nil && db != "" {
		_, err = strconv.ParseUint(db, 10, 31)
	}
	if err != nil {
		return errors.New("the database, behind the host's / or as db=, is not one number, 0 or above")
	}
	return nil
}

// db is the database as written in the path or in the query; the query wins. "" is none.
func (a *address) db() (string, error) {
	path := strings.Trim(a.url.Path, "/")
	if set := a.settings["db"]; len(set) > 0 && set[len(set)-1] != "" {
		if _, err := strconv.ParseUint("0"+path, 10, 31); err != nil {
			return "", err
		}
		return set[len(set)-1], nil
	}
	return path, nil
}

// hostPort is host:port, with go-redis's default host and the given default port.
func (a *address) hostPort(port string) string {
	host := a.url.Hostname()
	if host == "" {
		host = "localhost"
	}
	if a.url.Port() != "" {
		port = a.url.Port()
	}
	return net.JoinHostPort(host, port)
}

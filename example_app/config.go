package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
	"github.com/gin-tiers/ratelimit/tiers/watch"
)

// config is what the environment says, checked. The kill switch, RATE_LIMIT_DISABLED, is not here:
// the limiter itself reads it.
type config struct {
	listenAddr     string
	redisURLs      []string // none: limits are kept in memory
	tiers          ginlimit.TierSource
	tierFile       *watch.File // the same, or nil without TIERS_FILE
	prices         priceTable  // empty: money is not counted, and no tier has a budget of it
	callers        callers
	demo           bool          // API_KEYS is not set, so callers have the demo keys
	adminToken     string        // "": no admin routes, but with the demo keys
	failurePolicy  failurePolicy // when Redis fails
	droppedTiers   []tiers.Tier  // of demo keys that are not accepted, since the table does not have them
	upstreamURL    *url.URL      // nil: the built-in model answers
	upstreamAPIKey string
	upstreamCap    *ginlimit.Upstream // nil: none
	maxBody        int64              // bytes of a request
	stallTime      time.Duration      // no setting; a test makes it shorter
}

// loadConfig reads the settings and stops at the first that is wrong. The error is one line, and it
// repeats no value that may hold a secret.
func loadConfig(getenv func(string) string) (config, error) {
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	cfg := config{
		listenAddr: cmp.Or(get("LISTEN_ADDR"), "127.0.0.1:8080"),
		tiers:      fixedTiers{tiers.Default()},
		maxBody:    defaultMaxBody,
		stallTime:  stallTime,

		failurePolicy: failurePolicy(cmp.Or(get("FAILURE_POLICY"), string(failClosed))),
	}

	later := &needs{} // of a table that comes later; this one is looked at with each setting
	loopback, err := isLoopback(cfg.listenAddr)
	if err != nil {
		return config{}, fmt.Errorf("LISTEN_ADDR %q: %w", cfg.listenAddr, err)
	}
	if urls := get("REDIS_URL"); urls != "" {
		cfg.redisURLs = splitURLs(urls)
	}
	switch cfg.failurePolicy {
	case failClosed, failOpen, failLocal:
	default:
		return config{}, fmt.Errorf("FAILURE_POLICY %q: want closed, open or local", cfg.failurePolicy)
	}
	if path := get("TIERS_FILE"); path != "" {
		if cfg.tierFile, err = watch.Open(path, later.met); err != nil {
			return config{}, fmt.Errorf("TIERS_FILE: %w", err)
		}
		cfg.tiers = cfg.tierFile
	}
	if size := get("MAX_BODY_BYTES"); size != "" {
		if cfg.maxBody, err = parseSize(size); err != nil {
			return config{}, fmt.Errorf("MAX_BODY_BYTES %q: %w", size, err)
		}
	}
	if base := get("UPSTREAM_BASE_URL"); base != "" {
		if cfg.upstreamURL, err = parseBaseURL(base); err != nil {
			return config{}, fmt.Errorf("UPSTREAM_BASE_URL: %w", err)
		}
	}
	if cfg.upstreamCap, err = upstreamCap(get, cfg); err != nil {
		return config{}, err
	}
	if cfg.prices, err = pricesFor(cfg, get("PRICES_FILE")); err != nil {
		return config{}, fmt.Errorf("PRICES_FILE: %w", err)
	}
	cfg.upstreamAPIKey = get("UPSTREAM_API_KEY")
	if !isToken(cfg.upstreamAPIKey) {
		return config{}, errors.New("UPSTREAM_API_KEY: has characters that no bearer token has")
	}
	if cfg.adminToken = get("ADMIN_TOKEN"); !isToken(cfg.adminToken) {
		return config{}, errors.New("ADMIN_TOKEN: has characters that no bearer token has")
	}

	demo := demoCallers()
	if keys := get("API_KEYS"); keys == "" {
		cfg.demo = true
		cfg.callers, cfg.droppedTiers = demo.within(cfg.tiers.Store())
	} else {
		if cfg.callers, err = parseAPIKeys(keys, cfg.tiers.Store()); err != nil {
			return config{}, fmt.Errorf("API_KEYS: %w", err)
		}
	}
	if _, isKey := cfg.callers[sha256.Sum256([]byte(cfg.adminToken))]; isKey {
		return config{}, errors.New("ADMIN_TOKEN: is one of API_KEYS, whose owner would be an operator")
	}
	switch public := cfg.callers.share(demo); {
	case len(cfg.callers) == 0:
		return config{}, errors.New("API_KEYS: must be set, the tiers of the demo keys are not in TIERS_FILE")
	case public && !loopback:
		return config{}, fmt.Errorf("API_KEYS: the demo keys are public, set your own to listen on LISTEN_ADDR %q",
			cfg.listenAddr)
	case public && cfg.upstreamURL != nil:
		return config{}, errors.New(
			"API_KEYS: the demo keys are public, set your own to spend on UPSTREAM_BASE_URL")
	}
	later.tiers, later.prices = cfg.namedTiers(), cfg.prices == nil
	return cfg, nil
}

// namedTiers are the tiers that other settings than the table name.
func (cfg config) namedTiers() (named []tiers.Tier) {
	for _, caller := range cfg.callers {
		named = append(named, caller.tier)
	}
	if cfg.upstreamCap != nil {
		named = slices.AppendSeq(named, maps.Keys(cfg.upstreamCap.Share))
	}
	slices.Sort(named)
	return slices.Compact(named)
}

// pricesFor returns the prices of the file at path. Without one the built-in model has its own, and a
// provider's are not known: a budget of money would then never be used up.
func pricesFor(cfg config, path string) (priceTable, error) {
	switch who, field := spends(cfg.tiers.Store()); {
	case path != "":
		return loadPrices(path)
	case cfg.upstreamURL == nil:
		return demoPrices(), nil
	case field != "":
		return nil, fmt.Errorf("must be set: %s has %s, and without prices nothing is spent", who, field)
	}
	return nil, nil
}

// spends returns who has a budget of money first, a tier or the override of a user, and its field.
func spends(table *tiers.Store) (who, field string) {
	spent := func(l tiers.Limits) string {
		switch {
		case l.SpendPerDay > 0:
			return "spend_per_day"
		case l.SpendPerMonth > 0:
			return "spend_per_month"
		}
		return ""
	}
	for _, tier := range table.Tiers() {
		if field := spent(table.Lookup(tier)); field != "" {
			return fmt.Sprintf("tier %q", tier), field
		}
	}
	for user, override := range table.Users().Overrides {
		if field := spent(override.Limits); field != "" {
			return fmt.Sprintf("the override of %q", user), field
		}
	}
	return "", ""
}

// isLoopback reports whether only this machine can reach addr.
func isLoopback(addr string) (bool, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false, errors.New("want host:port, such as 127.0.0.1:8080")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, errors.New("the port must be a number from 0 to 65535")
	}
	ip, _ := netip.ParseAddr(host) // the zero Addr is no loopback
	return host == "localhost" || ip.IsLoopback(), nil
}

// isToken reports whether text can be sent as a bearer token. "" can.
func isToken(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > unicode.MaxASCII })
}

// parseSize reads a number of bytes.
func parseSize(text string) (int64, error) {
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil || size < 1 || size > largestMaxBody {
		return 0, fmt.Errorf("want a whole number of bytes, from 1 to %d", largestMaxBody)
	}
	return size, nil
}

// parseBaseURL accepts what OpenAI SDKs take as a base URL, such as https://api.openai.com/v1.
func parseBaseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err == nil && u.Port() != "" {
		_, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, errors.New("want http:// or https://, a host, a port up to 65535 and a path, and no user, " +
			"query or fragment")
	}
	return u, nil
}

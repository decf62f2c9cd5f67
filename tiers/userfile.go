package tiers

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// userSections are the sections of a tier file for single users. They are nodes, because the decoder would
// treat null as a missing section.
type userSections struct {
	Overrides yaml.Node `yaml:"overrides"`
	Allow     yaml.Node `yaml:"allow"`
	Deny      yaml.Node `yaml:"deny"`
}

// read reads the sections. It checks each id and each number alone; [Store.WithUsers] checks the rest.
func (s *userSections) read() (u Users, err error) {
	named := make(namedUsers)
	if n := &s.Overrides; !n.IsZero() {
		if u.Overrides, err = named.overrides(n); err != nil {
			return Users{}, in("overrides", err)
		}
	}
	if u.Allow, err = named.list(&s.Allow, "allow"); err != nil {
		return Users{}, in("allow", err)
	}
	if u.Deny, err = named.list(&s.Deny, "deny"); err != nil {
		return Users{}, in("deny", err)
	}
	return u, nil
}

// namedUsers has the section in which each user was named, by id.
type namedUsers map[string]string

// overrides reads the mapping of users.
func (named namedUsers) overrides(n *yaml.Node) (map[string]Override, error) {
	all := make(map[string]Override)
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 { // before entries, whose errors have the id in their path
			if rule := brokenID(n.Content[i].Value); rule != "" {
				return nil, problemAt(n.Content[i], "%s", rule)
			}
			named[n.Content[i].Value] = "overrides"
		}
	}
	err := entries(n, "want a mapping from users to limits", func(user, value *yaml.Node) error {
		var read Override
		err := readFields(value, reflect.ValueOf(&read).Elem())
		all[user.Value] = read
		return err
	})
	return all, err
}

// list reads a list of users, or nothing if there is no such section.
func (named namedUsers) list(n *yaml.Node, section string) (ids []string, err error) {
	if n.IsZero() {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, problemAt(n, "want a list of users, got %s", showNode(n))
	}
	for _, user := range n.Content {
		if user.ShortTag() != "!!str" {
			return nil, problemAt(user, "want a user's id as a string, got %s", showNode(user))
		}
		if rule := brokenID(user.Value); rule != "" {
			return nil, problemAt(user, "%s", rule)
		}
		if before, again := named[user.Value]; again {
			return nil, problemAt(user, "%s is there already, in %s", show(user.Value), before)
		}
		named[user.Value] = section
		ids = append(ids, user.Value)
	}
	return ids, nil
}

// maxUserID bounds the length of a user's id, in bytes. An id of OpenID Connect has at most 255.
const maxUserID = 256

// brokenID returns what is wrong with a user's id, or "". An operator must see whom a section names.
func brokenID(id string) string {
	rule := brokenRule(id)
	if len(id) > maxUserID {
		rule = fmt.Sprintf("is longer than %d bytes", maxUserID)
	}
	if block, ok := strings.CutPrefix(id, "ip/"); ok && rule == "" && !isBlock(block) {
		rule = `matches no caller: write an address as "ip/203.0.113.7" or "ip/2001:db8::/64"`
	}
	if rule == "" {
		return ""
	}
	return fmt.Sprintf("id %+q %s", clip(id, maxShown), rule)
}

// isBlock reports whether ginlimit.ByClientIP counts callers under ip/block: an IPv4 address, or an IPv6 /64
// that carries no IPv4 address (6to4). The rule is that of ginlimit/internal/clientaddr.Block. Any other
// resolver's id that begins with ip/ is counted under another name.
func isBlock(block string) bool {
	if addr, err := netip.ParseAddr(block); err == nil {
		return addr.Is4()
	}
	p, err := netip.ParsePrefix(block)
	return err == nil && p.Bits() == 64 && p.Addr().Is6() && p.Masked().String() == block &&
		!strings.HasPrefix(block, "2002:")
}

// rfc3339 returns the pattern of times that timeAt accepts, made once. time.Parse accepts more: hours of one
// digit, a comma before the fraction, zones of 24 hours and more.
var rfc3339 = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)
})

// timeAt returns the time at n. It may be quoted, because in JSON it must be.
func timeAt(n *yaml.Node) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || !rfc3339().MatchString(n.Value) {
		return time.Time{}, problemAt(n, "want a time such as 2026-12-31T23:59:59Z, got %s", showNode(n))
	}
	return at, nil
}

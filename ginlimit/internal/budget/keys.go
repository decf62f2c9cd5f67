package budget

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// DefaultPrefix is the beginning of all keys, unless the operator sets another.
const DefaultPrefix = "ratelimit"

// maxPart is the longest encoded id or scope that a key has unhashed.
const maxPart = 128

// hashedPart begins a part that is hashed because it was too long.
const hashedPart = "sha256-"

// Names makes the keys of one scope: prefix:user:scope:form, without the scope if it is empty. With hash tags
// the user is in literal braces, so that a Cluster keeps the keys of a user in one slot. If a user has
// another tag, such as the organisation, keys are prefix:{tag}user:scope:form. The zero value has the default
// prefix, no scope and no hash tags.
type Names struct {
	Prefix   string // "" = DefaultPrefix
	Scope    string // not encoded
	HashTags bool
	TagOf    func(id string) string // nil, or "" for an id: the id is its own tag
}

// CheckPrefix returns an error unless prefix can begin a key: letters, digits, _ - . @ + = / and, not at its
// ends, colons. Anything else could set the hash tag.
func CheckPrefix(prefix string) error {
	for i := range len(prefix) {
		if b := prefix[i]; !plainByte(b) && (b != ':' || i == 0 || i == len(prefix)-1) {
			return fmt.Errorf("key prefix %q: byte %d is none of letters, digits, _ - . @ + = / and inner colons",
				prefix, i+1)
		}
	}
	if prefix == "" || len(prefix) > maxPart {
		return fmt.Errorf("key prefix has %d bytes, want 1 to %d", len(prefix), maxPart)
	}
	return nil
}

// Key is the key of a user's dimension.
func (n Names) Key(userID string, d Dimension) string {
	return n.Head() + n.Owner(userID) + n.Tail(d)
}

// Owner returns the part of a key that names the user or another subject. It is between Head and Tail.
func (n Names) Owner(id string) string {
	if n.HashTags && n.TagOf != nil {
		if tag := n.TagOf(id); tag != "" && tag != id {
			return EncodePart(tag) + "}" + EncodePart(id)
		}
	}
	return n.ownTag(EncodePart(id))
}

// Upstream is the owner of the keys of a provider's shared cap. No id has such keys.
func (n Names) Upstream(name string) string { return n.ownTag("!upstream/" + EncodePart(name)) }

func (n Names) ownTag(part string) string {
	if n.HashTags {
		return part + "}"
	}
	return part
}

// OneSlot reports whether one script may decide on the keys of both owners.
func (n Names) OneSlot(owner, other string) bool {
	if !n.HashTags {
		return true
	}
	tag, _, _ := strings.Cut(owner, "}")
	otherTag, _, _ := strings.Cut(other, "}")
	return tag == otherTag
}

// Head is the part of a key before its owner.
func (n Names) Head() string {
	head := cmp.Or(n.Prefix, DefaultPrefix) + ":"
	if n.HashTags {
		head += "{"
	}
	return head
}

// Tail is the part of a key after its owner.
func (n Names) Tail(d Dimension) string {
	if n.Scope != "" {
		return ":" + EncodePart(n.Scope) + ":" + d.suffix()
	}
	return ":" + d.suffix()
}

// LaterLease is the key of a further lease of one request. No scope looks like it: "!" is always encoded.
func LaterLease(head, owner string, number int) string {
	return head + owner + ":!" + strconv.Itoa(number) + ":leases"
}

// EncodePart encodes an id or a scope. No two of them become the same part, and none can set the hash tag or
// another part: bytes other than letters, digits and _ - . @ + = / are percent-encoded in upper-case hex. If
// the result is longer than maxPart, or the original begins with "sha256-", it is "sha256-" and the hex
// SHA-256 of the original bytes. The bound keeps keys cheap.
func EncodePart(part string) string {
	if len(part) > maxPart || strings.HasPrefix(part, hashedPart) {
		return hashPart(part)
	}
	escapes := 0
	for i := range len(part) {
		if !plainByte(part[i]) {
			escapes++
		}
	}
	switch {
	case escapes == 0:
		return part
	case len(part)+2*escapes > maxPart:
		return hashPart(part)
	}
	const upperHex = "0123456789ABCDEF"
	out := make([]byte, 0, len(part)+2*escapes)
	for i := range len(part) {
		if b := part[i]; plainByte(b) {
			out = append(out, b)
		} else {
			out = append(out, '%', upperHex[b>>4], upperHex[b&15])
		}
	}
	return string(out)
}

func hashPart(part string) string {
	sum := sha256.Sum256([]byte(part))
	return hashedPart + hex.EncodeToString(sum[:])
}

func plainByte(b byte) bool {
	switch {
	case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '-' <= b && b <= '9': // between '-' and '0' are '.' and '/'
		return true
	}
	return b == '_' || b == '@' || b == '+' || b == '='
}

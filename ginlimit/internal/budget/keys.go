package budget

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// DefaultPrefix is what keys begin with, unless the operator says otherwise.
const DefaultPrefix = "ratelimit"

// maxPart is the longest id or scope, after encoding, that stands in a key as itself.
const maxPart = 128

// hashedPart opens a part that stands for one too long to keep.
const hashedPart = "sha256-"

// Names makes the keys of one scope: prefix:user:scope:form, without the scope where it is empty. With
// hash tags the user stands in literal braces, so that a Cluster keeps the keys of a user in one slot.
// The zero value has the default prefix, no scope and no hash tags. It is comparable.
type Names struct {
	Prefix   string // "" = DefaultPrefix
	Scope    string // as the application named it
	HashTags bool
}

// CheckPrefix returns an error unless prefix can begin a key: letters, digits, _ - . @ + = / and, between
// others, colons. Anything else could set the hash tag.
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
	return n.Head() + EncodePart(userID) + n.Tail(d)
}

// UpstreamPart is the user part of the keys of a provider's shared cap. EncodePart never makes such a one.
func UpstreamPart(name string) string { return "!upstream/" + EncodePart(name) }

// Head is what stands before the encoded user.
func (n Names) Head() string {
	head := cmp.Or(n.Prefix, DefaultPrefix) + ":"
	if n.HashTags {
		head += "{"
	}
	return head
}

// Tail is what stands after the encoded user.
func (n Names) Tail(d Dimension) string {
	tail := ""
	if n.HashTags {
		tail = "}"
	}
	if n.Scope != "" {
		tail += ":" + EncodePart(n.Scope)
	}
	return tail + ":" + d.suffix()
}

// Later is what stands after the encoded user in the key of a further lease of one request, before the number
// of that lease and ":leases". No scope is like it: "!" is always encoded.
func (n Names) Later() string {
	if n.HashTags {
		return "}:!"
	}
	return ":!"
}

// EncodePart writes an id or a scope so that no two of them meet and none can set the hash tag or
// another part: bytes other than letters, digits and _ - . @ + = / are percent-encoded in
// upper-case hex. A part that would be longer than maxPart, or that begins as a hashed one does,
// becomes "sha256-" and the hex SHA-256 of the original bytes; 128 bytes bound a key's cost.
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

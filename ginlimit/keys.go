package ginlimit

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// maxPart is the longest id or scope, after encoding, that stands in a key as itself.
const maxPart = 128

// hashedPart opens a part that stands for one too long to keep.
const hashedPart = "sha256-"

// namespace makes the keys of one scope. The zero value is no scope, without hash tags.
type namespace struct {
	scope    string // ":" and the encoded scope, or empty
	hashTags bool
}

func (n namespace) withScope(name string) namespace {
	n.scope = ""
	if name != "" {
		n.scope = ":" + encodePart(name)
	}
	return n
}

// key is ratelimit:{user_id}:{window_seconds}, with the scope before the window. With hash tags the
// braces are literal, so that a Cluster keeps the keys of a user in one slot.
func (n namespace) key(userID string, window time.Duration) string {
	return n.head() + encodePart(userID) + n.tail(window)
}

// head and tail are what stands before and after the user; they are known at start.
func (n namespace) head() string {
	if n.hashTags {
		return "ratelimit:{"
	}
	return "ratelimit:"
}

func (n namespace) tail(window time.Duration) string {
	tail := n.scope + ":" + strconv.FormatInt(int64(window/time.Second), 10)
	if n.hashTags {
		return "}" + tail
	}
	return tail
}

// encodePart writes an id or a scope so that no two of them meet and none can set the hash tag or
// another part: bytes other than letters, digits and _ - . @ + = / are percent-encoded in
// upper-case hex. A part that would be longer than maxPart, or that begins as a hashed one does,
// becomes "sha256-" and the hex SHA-256 of the original bytes; 128 bytes bound a key's cost.
func encodePart(part string) string {
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
	case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9':
		return true
	}
	return strings.IndexByte("_-.@+=/", b) >= 0
}

package tiers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxFileSize is far above any real table: it has room for more than 5,000 tiers.
const maxFileSize = 256 << 10

// Load reads a tier file (see the package comment) to its end or to the first byte above 256 KiB. It wraps
// the error of a failing reader.
func Load(r io.Reader) (*Store, error) {
	if r == nil {
		return nil, errors.New("tiers: nil reader")
	}
	data, err := io.ReadAll(io.LimitReader(r, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("tiers: %w", err)
	}
	f, err := parse(data)
	if err != nil {
		return nil, errors.New("tiers: " + oneLine(err.Error()) + hint(data))
	}
	s, err := NewStore(f.fallback, f.Tiers)
	if err != nil {
		return nil, err
	}
	return s.WithUsers(f.users)
}

// hint names an invisible character that may have confused the parser.
func hint(data []byte) string {
	at := bytes.IndexAny(data, "\u0085\u2028\u2029")
	if at < 0 {
		return ""
	}
	r, _ := utf8.DecodeRune(data[at:])
	return fmt.Sprintf(" (the file has %U, which YAML takes for a line break)", r)
}

// LoadFile reads the tier file at path like [Load]. It follows symbolic links. It refuses anything but a
// regular file (a directory, a pipe, a device) without opening it, because opening may block for ever. Errors
// name the path. Errors of the operating system are wrapped, so that errors.Is(err, fs.ErrNotExist) works.
func LoadFile(path string) (*Store, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("tiers: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("tiers: %s is not a regular file (%s)", path, info.Mode())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tiers: %w", err)
	}
	defer f.Close()
	s, err := Load(f)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return s, nil
}

// file is the content of a tier file. A new section needs a field here: the decoder refuses unknown fields.
type file struct {
	Fallback     yaml.Node `yaml:"fallback"` // a node, because the decoder would treat null as missing
	Tiers        table     `yaml:"tiers"`
	userSections `yaml:",inline"`

	fallback Tier  // as the field says, or Free
	users    Users // of the sections
}

// parse reads data twice: as nodes, to see what the decoder resolves silently, and then into a file.
func parse(data []byte) (f file, err error) {
	if len(data) > maxFileSize {
		return f, errors.New("file is larger than 256 KiB")
	}
	if err := oneDocument(yaml.NewDecoder(bytes.NewReader(data))); err != nil {
		return f, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := decode(dec, &f); err != nil {
		return f, err
	}
	f.fallback = Free
	if n := &f.Fallback; !n.IsZero() {
		if n.ShortTag() != "!!str" {
			return f, in("fallback", problemAt(n, "want a string, got %s", showNode(n)))
		}
		f.fallback = Tier(n.Value)
	}
	if f.Tiers == nil {
		return f, errors.New("field tiers is missing")
	}
	f.users, err = f.userSections.read()
	return f, err
}

// oneDocument checks that there is one document, without indirections.
func oneDocument(dec *yaml.Decoder) error {
	var doc, second yaml.Node
	err := decode(dec, &doc)
	if errors.Is(err, io.EOF) || err == nil && doc.Content[0].ShortTag() == "!!null" {
		return errors.New("empty file")
	}
	if err != nil {
		return err
	}
	switch err := decode(dec, &second); {
	case err == nil:
		return problemAt(&second, "second document; a tier file is one")
	case !errors.Is(err, io.EOF):
		return err
	}
	return direct(&doc)
}

// direct refuses a node whose value is not what is written there.
func direct(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return problemAt(n, "alias *%s is not allowed", show(n.Value))
	case n.Anchor != "":
		return problemAt(n, "anchor &%s is not allowed", show(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		return problemAt(n, "tag %s is not allowed", show(n.Tag))
	case n.Tag == "!!merge":
		return problemAt(n, "merge key << is not allowed")
	}
	for i, child := range n.Content {
		err := direct(child)
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			err = in(n.Content[i-1].Value, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decode is dec.Decode with the decoder's list of errors joined into one. yaml.v3 has panicked on malformed
// input several times; such a panic becomes an error.
func decode(dec *yaml.Decoder, into any) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("not YAML")
		}
	}()
	err = dec.Decode(into)
	if list, ok := errors.AsType[*yaml.TypeError](err); ok {
		return errors.New(strings.Join(list.Errors, "; "))
	}
	return err
}

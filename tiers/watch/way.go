package watch

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds the links on a way, like the operating system: they may form a circle.
const maxLinks = 40

// wayTo returns the paths that decide which file an absolute path means: every symbolic link on the way, and
// the end of the way. If something on the way does not exist yet, the way ends there.
func wayTo(path string) map[string]bool {
	way := make(map[string]bool)
	at, rest := root(path)
	for links := 0; rest != ""; {
		name, after, _ := strings.Cut(rest, string(filepath.Separator))
		at, rest = filepath.Join(at, name), after
		info, err := os.Lstat(at)
		switch {
		case err != nil:
			way[at] = true
			return way
		case info.Mode()&os.ModeSymlink == 0:
			continue
		}
		way[at] = true
		target, err := os.Readlink(at)
		if links++; err != nil || links > maxLinks {
			return way
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(at), target)
		}
		at, rest = root(filepath.Join(target, rest))
	}
	way[at] = true
	return way
}

// root splits an absolute path into its root and the rest.
func root(path string) (at, rest string) {
	at = filepath.VolumeName(path) + string(filepath.Separator)
	return at, strings.TrimPrefix(filepath.Clean(path), at)
}

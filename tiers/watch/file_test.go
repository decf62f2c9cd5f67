package watch

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// enough is longer than a report takes on a busy machine.
const enough = 20 * time.Second

// dir is a new directory under its own name.
func dir(t *testing.T) string {
	t.Helper()
	name, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return name
}

// file is a tier file whose tier free has this many requests a minute.
func file(perMinute string) string {
	return "tiers: {free: {per_minute: " + perMinute + ", per_day: 100}}\n"
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// replace writes a file as editors and deployments do.
func replace(t *testing.T, path, content string) {
	t.Helper()
	write(t, path+".new", content)
	require.NoError(t, os.Rename(path+".new", path))
}

// symlink makes path a link to target, at once, whatever it was before.
func symlink(t *testing.T, target, path string) {
	t.Helper()
	require.NoError(t, os.Symlink(target, path+".new"))
	require.NoError(t, os.Rename(path+".new", path))
}

type report struct {
	store *tiers.Store
	err   error
}

// watched is a File that is watched until the test is over.
type watched struct {
	*File
	t       *testing.T
	reports chan report
}

func watching(t *testing.T, f *File) *watched {
	t.Helper()
	w := &watched{f, t, make(chan report, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- f.Watch(ctx, func(s *tiers.Store, err error) { w.reports <- report{s, err} })
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return w
}

func opened(t *testing.T, path string) *watched {
	t.Helper()
	f, err := Open(path)
	require.NoError(t, err)
	return watching(t, f)
}

func (w *watched) next() report {
	w.t.Helper()
	select {
	case r := <-w.reports:
		return r
	case <-time.After(enough):
		require.FailNow(w.t, "no report")
		return report{}
	}
}

// gets waits until the table has this many requests a minute. On the way the file may be missing for a
// moment, and is never bad.
func (w *watched) gets(perMinute int) {
	w.t.Helper()
	for {
		r := w.next()
		if errors.Is(r.err, fs.ErrNotExist) {
			continue
		}
		require.NoError(w.t, r.err)
		if r.store.Lookup("free").PerMinute == perMinute {
			require.Same(w.t, r.store, w.Store())
			return
		}
	}
}

// What Kubernetes mounts: the file is a link into ..data, which is a link to a directory that a new one
// replaces.
func configMap(t *testing.T) (path string, update func(content string)) {
	mount, version := dir(t), 0
	update = func(content string) {
		version++
		name := filepath.Join(mount, "..v"+string(rune('0'+version)))
		old, _ := os.Readlink(filepath.Join(mount, "..data"))
		require.NoError(t, os.Mkdir(name, 0o700))
		write(t, filepath.Join(name, "tiers.yaml"), content)
		symlink(t, filepath.Base(name), filepath.Join(mount, "..data"))
		if old != "" {
			require.NoError(t, os.RemoveAll(filepath.Join(mount, old)))
		}
	}
	path = filepath.Join(mount, "tiers.yaml")
	symlink(t, "..data/tiers.yaml", path)
	return path, update
}

func TestWatch(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (path string, update func(content string)){
		"written in place": func(t *testing.T) (string, func(string)) {
			path := filepath.Join(dir(t), "tiers.yaml")
			return path, func(content string) { write(t, path, content) }
		},
		"replaced": func(t *testing.T) (string, func(string)) {
			path := filepath.Join(dir(t), "tiers.yaml")
			return path, func(content string) { replace(t, path, content) }
		},
		"removed and made anew": func(t *testing.T) (string, func(string)) {
			path := filepath.Join(dir(t), "tiers.yaml")
			return path, func(content string) {
				_ = os.Remove(path)
				replace(t, path, content)
			}
		},
		"linked, replaced where it is": func(t *testing.T) (string, func(string)) {
			real, path := filepath.Join(dir(t), "real.yaml"), filepath.Join(dir(t), "tiers.yaml")
			symlink(t, real, path)
			return path, func(content string) { replace(t, real, content) }
		},
		"a link between is replaced": func(t *testing.T) (string, func(string)) {
			first, between := filepath.Join(dir(t), "tiers.yaml"), filepath.Join(dir(t), "between")
			symlink(t, filepath.Join(between, "tiers.yaml"), first)
			return first, func(content string) {
				target := dir(t)
				write(t, filepath.Join(target, "tiers.yaml"), content)
				symlink(t, target, between)
			}
		},
		"ConfigMap": configMap,
		"its directory replaced": func(t *testing.T) (string, func(string)) {
			parent := dir(t)
			conf := filepath.Join(parent, "conf")
			require.NoError(t, os.Mkdir(conf, 0o700))
			return filepath.Join(conf, "tiers.yaml"), func(content string) {
				made, old := dir(t), filepath.Join(dir(t), "old")
				write(t, filepath.Join(made, "tiers.yaml"), content)
				require.NoError(t, os.Rename(conf, old))
				require.NoError(t, os.Rename(made, conf))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, update := start(t)
			update(file("5"))
			w := opened(t, path)
			require.Equal(t, 5, w.Store().Lookup("free").PerMinute)
			for i, perMinute := range []string{"6", "7", "8"} {
				update(file(perMinute))
				w.gets(6 + i)
			}
		})
	}
}

// M4: an invalid file keeps the table and is reported; a good one counts again.
func TestBadFileKeepsTheTable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(dir(t), "tiers.yaml")
	write(t, path, file("5"))
	w := opened(t, path)
	before := w.Store()

	replace(t, path, file("101"))
	r := w.next()
	require.Nil(t, r.store)
	require.EqualError(t, r.err, "tiers: free.per_day: 100 is less than per_minute 101 (in "+path+")")
	require.Same(t, before, w.Store())

	replace(t, path, "tiers: {free")
	require.ErrorContains(t, w.next().err, "yaml: ")
	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, w.next().err, fs.ErrNotExist)
	require.Same(t, before, w.Store())

	replace(t, path, file("5"))
	r = w.next()
	require.NoError(t, r.err, "told that the file is good again")
	require.Same(t, before, r.store)
	require.Same(t, before, w.Store(), "it is the same table")
}

// A check refuses a table as a broken rule does.
func TestChecks(t *testing.T) {
	t.Parallel()
	needsPro := errors.New("pro has users")
	check := func(s *tiers.Store) error {
		if s.Lookup("pro") == s.Lookup("free") {
			return needsPro
		}
		return nil
	}
	const both = "tiers:\n  free: {per_minute: 5, per_day: 100}\n  pro: {per_minute: 6, per_day: 100}\n"
	path := filepath.Join(dir(t), "tiers.yaml")
	write(t, path, file("5"))
	_, err := Open(path, check)
	require.ErrorIs(t, err, needsPro)
	require.EqualError(t, err, "tiers/watch: pro has users (in "+path+")")

	write(t, path, both)
	f, err := Open(path, check)
	require.NoError(t, err)
	w := watching(t, f)
	replace(t, path, file("7"))
	require.ErrorIs(t, w.next().err, needsPro)
	require.Equal(t, 6, w.Store().Lookup("pro").PerMinute)
}

// A change between Open and Watch is seen.
func TestChangeBeforeWatch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(dir(t), "tiers.yaml")
	write(t, path, file("5"))
	f, err := Open(path)
	require.NoError(t, err)
	write(t, path, file("6"))
	watching(t, f).gets(6)
}

// What the operating system does not tell is seen all the same, and an error is reported once. A directory
// further up that another one replaces is such a thing.
func TestChangeWithoutEvent(t *testing.T) {
	t.Parallel()
	parent := dir(t)
	path := filepath.Join(parent, "a", "b", "tiers.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	write(t, path, file("5"))
	f, err := Open(path)
	require.NoError(t, err)
	f.always = 5 * time.Millisecond
	w := watching(t, f)

	require.NoError(t, os.Rename(filepath.Join(parent, "a"), filepath.Join(parent, "old")))
	require.ErrorIs(t, w.next().err, fs.ErrNotExist)
	require.NoError(t, os.MkdirAll(filepath.Join(parent, "new", "b"), 0o700))
	write(t, filepath.Join(parent, "new", "b", "tiers.yaml"), file("6"))
	require.NoError(t, os.Rename(filepath.Join(parent, "new"), filepath.Join(parent, "a")))
	w.gets(6)
	require.Empty(t, w.reports)
}

// The path is that of the working directory at Open.
func TestRelativePath(t *testing.T) {
	first := dir(t)
	write(t, filepath.Join(first, "tiers.yaml"), file("5"))
	t.Chdir(first)
	f, err := Open("tiers.yaml")
	require.NoError(t, err)
	t.Chdir(dir(t))
	w := watching(t, f)
	write(t, filepath.Join(first, "new.yaml"), file("6")) // written in place, it would be empty for a moment
	require.NoError(t, os.Rename(filepath.Join(first, "new.yaml"), filepath.Join(first, "tiers.yaml")))
	w.gets(6)
}

func TestOpenRefuses(t *testing.T) {
	_, err := Open(filepath.Join(dir(t), "missing.yaml"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Open(dir(t))
	require.ErrorContains(t, err, "is not a regular file")
}

// A file that is gone with its directory before Watch begins may come back.
func TestDirectoryGoneBeforeWatch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(dir(t), "conf", "tiers.yaml")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	write(t, path, file("5"))
	f, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	w := watching(t, f)
	require.ErrorIs(t, w.next().err, fs.ErrNotExist)
	require.Equal(t, 5, w.Store().Lookup("free").PerMinute)
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	replace(t, path, file("6"))
	w.gets(6)
}

// Nothing goes on when ctx is over. Without report the log tells.
func TestWatchEnds(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	path := filepath.Join(dir(t), "tiers.yaml")
	write(t, path, file("5"))
	goroutines := runtime.NumGoroutine()
	f, err := Open(path)
	require.NoError(t, err)
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines, "Open starts none")
	write(t, path, file("6"))

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Watch(ctx, nil) }()
	changed := func() bool { return f.Store().Lookup("free").PerMinute == 6 }
	require.Eventually(t, changed, enough, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	for start := time.Now(); runtime.NumGoroutine() > goroutines && time.Since(start) < enough; {
		runtime.Gosched()
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	require.Contains(t, log.String(), "the tier file has changed")
}

func TestWayTo(t *testing.T) {
	base := dir(t)
	in := func(name string) string { return filepath.Join(base, name) }
	require.NoError(t, os.MkdirAll(in("v1/sub"), 0o700))
	write(t, in("v1/sub/file"), "")
	symlink(t, "v1", in("current"))
	symlink(t, "current/sub/file", in("file"))
	symlink(t, "circle", in("circle"))
	symlink(t, "nowhere/file", in("dangling"))
	for path, want := range map[string][]string{
		"v1/sub/file": {"v1/sub/file"},
		"file":        {"file", "current", "v1/sub/file"},
		"dangling":    {"dangling", "nowhere"},
		"circle":      {"circle"},
		"missing":     {"missing"},
	} {
		way := make(map[string]bool)
		for _, step := range want {
			way[in(step)] = true
		}
		require.Equal(t, way, wayTo(in(path)), path)
	}
}

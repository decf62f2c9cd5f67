package tiers_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

// free is the smallest tier file. A row that adds a line to it adds line 3.
const free = "tiers:\n  free: {per_minute: 5, per_day: 100}\n"

// largest is the size of the largest tier file.
const largest = 256 << 10

// withMinute is the tier file whose per_minute is written so, on line 1.
func withMinute(value string) string {
	return "tiers: {free: {per_minute: " + value + ", per_day: 100}}"
}

// withFree is the tier file of one tier with these further budgets, on line 1.
func withFree(budgets string) string {
	return "tiers: {free: {per_minute: 5, per_day: 100, " + budgets + "}}"
}

func TestLoad(t *testing.T) {
	const (
		pro  = "  pro: {per_minute: 60, per_day: 5000}"
		both = free + pro + "\n"
	)
	crlf := strings.NewReplacer("\n", "\r\n")
	for name, tc := range map[string]struct {
		file     string
		fallback tiers.Tier
		tiers    []tiers.Tier
	}{
		"fallback omitted": {free, "free", []tiers.Tier{"free"}},
		"fallback given":   {"fallback: pro\n" + both, "pro", []tiers.Tier{"free", "pro"}},
		"fallback last":    {both + "fallback: pro\n", "pro", []tiers.Tier{"free", "pro"}},
		"block style":      {"tiers:\n free:\n  per_day: 100\n  per_minute: 5\n", "free", []tiers.Tier{"free"}},
		"comments": {
			"# a\n---\n # b\n" + free + "\n    # c\n" + pro + " # d\n# e",
			"free",
			[]tiers.Tier{"free", "pro"},
		},
		"quoted names": {
			"'tiers': {\"10\": {'per_minute': 5, per_day: 100}}\nfallback: '10'",
			"10",
			[]tiers.Tier{"10"},
		},
		"number sign in names": {
			"tiers: {'# a': {per_minute: 5, per_day: 100}}\nfallback: '# a'",
			"# a",
			[]tiers.Tier{"# a"},
		},
		"no newline at end": {strings.TrimSpace(free), "free", []tiers.Tier{"free"}},
		"document markers":  {"---\n" + free + "...\n", "free", []tiers.Tier{"free"}},
		"byte order mark":   {"\ufeff" + free, "free", []tiers.Tier{"free"}},
		"CRLF":              {crlf.Replace("# c\n" + both), "free", []tiers.Tier{"free", "pro"}},
		"both":              {"\ufeff" + crlf.Replace("---\n"+both), "free", []tiers.Tier{"free", "pro"}},
		"JSON": {
			`{"tiers": {"free": {"per_minute": 5, "per_day": 100}}}`,
			"free",
			[]tiers.Tier{"free"},
		},
		"JSON without blanks": {`{"tiers":{"free":{"per_minute":5,"per_day":100}}}`, "free", []tiers.Tier{"free"}},
		"JSON with tabs": {
			"{\n\t\"tiers\": {\n\t\t\"free\": {\n\t\t\t\"per_minute\": 5,\n\t\t\t\"per_day\": 100\n\t\t}\n\t}\n}\n",
			"free", []tiers.Tier{"free"},
		},
		"exactly 256 KiB": {free + "#" + strings.Repeat("x", largest-len(free)-1), "free", []tiers.Tier{"free"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := tiers.Load(strings.NewReader(tc.file))
			require.NoError(t, err)
			assert.Equal(t, tc.fallback, s.Fallback())
			assert.Equal(t, tc.tiers, s.Tiers())
			assert.Equal(t, tiers.Limits{PerMinute: 5, PerDay: 100}, s.Lookup(tc.tiers[0]))
		})
	}
}

// A table of thousands of tiers is unusual, and still read.
func TestManyTiers(t *testing.T) {
	file := "fallback: t0\ntiers:\n"
	for i := 0; len(file) < largest-50; i++ {
		file += fmt.Sprintf("  t%d: {per_minute: %d, per_day: %[2]d}\n", i, i+1)
	}
	s, err := tiers.Load(strings.NewReader(file))
	require.NoError(t, err)
	assert.Greater(t, len(s.Tiers()), 5_000)
	assert.Equal(t, 5_001, s.Lookup("t5000").PerDay)
}

func TestLoadReaders(t *testing.T) {
	t.Run("nil", func(t *testing.T) {
		_, err := tiers.Load(nil)
		assert.EqualError(t, err, "tiers: nil reader")
	})
	t.Run("failing", func(t *testing.T) {
		broken := errors.New("disk on fire")
		_, err := tiers.Load(iotest.ErrReader(broken))
		require.ErrorIs(t, err, broken)
		assert.EqualError(t, err, "tiers: disk on fire")
	})
	t.Run("one byte at a time", func(t *testing.T) {
		s, err := tiers.Load(iotest.OneByteReader(strings.NewReader(free)))
		require.NoError(t, err)
		assert.Equal(t, 5, s.Lookup("free").PerMinute)
	})
	t.Run("endless", func(t *testing.T) {
		r := new(zeros)
		_, err := tiers.Load(r)
		assert.EqualError(t, err, "tiers: file is larger than 256 KiB")
		assert.EqualValues(t, largest+1, *r, "bytes read")
	})
}

// zeros reads as zero bytes without end, and counts them.
type zeros int

func (z *zeros) Read(p []byte) (int, error) {
	*z += zeros(len(p))
	clear(p)
	return len(p), nil
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	write := func(t *testing.T, content string) string {
		path := filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "_")+".yaml")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	t.Run("good", func(t *testing.T) {
		s, err := tiers.LoadFile(write(t, free))
		require.NoError(t, err)
		assert.Equal(t, tiers.Limits{PerMinute: 5, PerDay: 100}, s.Lookup("free"))
	})
	t.Run("broken rule", func(t *testing.T) {
		path := write(t, strings.ReplaceAll(free, "100", "3"))
		_, err := tiers.LoadFile(path)
		assert.EqualError(t, err, "tiers: free.per_day: 3 is less than per_minute 5 (in "+path+")")
	})
	t.Run("too large", func(t *testing.T) {
		path := write(t, strings.Repeat("#", largest+1))
		_, err := tiers.LoadFile(path)
		assert.EqualError(t, err, "tiers: file is larger than 256 KiB (in "+path+")")
	})
	t.Run("missing", func(t *testing.T) {
		path := filepath.Join(dir, "missing.yaml")
		_, err := tiers.LoadFile(path)
		require.ErrorIs(t, err, fs.ErrNotExist)
		assert.ErrorContains(t, err, "tiers: stat "+path+": ")
	})
	t.Run("no path", func(t *testing.T) {
		_, err := tiers.LoadFile("")
		assert.ErrorIs(t, err, fs.ErrNotExist)
	})
	t.Run("symbolic link", func(t *testing.T) { // as Kubernetes mounts a ConfigMap
		data := filepath.Join(dir, "..data")
		require.NoError(t, os.Symlink(filepath.Dir(write(t, free)), data))
		path := filepath.Join(dir, "link.yaml")
		require.NoError(t, os.Symlink(filepath.Join(data, filepath.Base(write(t, free))), path))
		s, err := tiers.LoadFile(path)
		require.NoError(t, err)
		assert.Equal(t, 5, s.Lookup("free").PerMinute)
	})
	t.Run("link to nothing", func(t *testing.T) {
		path := filepath.Join(dir, "dangling.yaml")
		require.NoError(t, os.Symlink(filepath.Join(dir, "nothing"), path))
		_, err := tiers.LoadFile(path)
		assert.ErrorIs(t, err, fs.ErrNotExist)
	})
	t.Run("unreadable", func(t *testing.T) {
		path := write(t, free)
		require.NoError(t, os.Chmod(path, 0))
		if _, err := os.ReadFile(path); err == nil {
			t.Skip("this user may read everything")
		}
		_, err := tiers.LoadFile(path)
		require.ErrorIs(t, err, fs.ErrPermission)
		assert.ErrorContains(t, err, path)
	})
}

// R42: what is no regular file is refused at once. To open a pipe that nobody writes to would hang.
func TestLoadFileOfNoRegularFile(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(pipe, link))
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	require.NoError(t, err)
	defer socket.Close()
	for _, path := range []string{dir, pipe, link, socket.Addr().String(), os.DevNull, "/dev/zero"} {
		failed := make(chan error, 1)
		go func() {
			_, err := tiers.LoadFile(path)
			failed <- err
		}()
		select {
		case err := <-failed:
			require.ErrorContains(t, err, "tiers: "+path+" is not a regular file (")
		case <-time.After(10 * time.Second):
			require.FailNow(t, "LoadFile hangs", path)
		}
	}
}

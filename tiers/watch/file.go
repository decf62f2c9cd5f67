package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/gin-tiers/ratelimit/tiers"
)

const (
	// quiet is how long the file must not change before it is read: writing takes several steps.
	quiet = 100 * time.Millisecond
	// always is how often the file is read even without a change.
	always = time.Minute
)

// File is a tier file and its last good table. It is safe for concurrent use. Make one with [Open].
type File struct {
	path   string
	checks []func(*tiers.Store) error
	always time.Duration
	store  atomic.Pointer[tiers.Store]
}

// Open loads the tier file at path like [tiers.LoadFile], with the same errors. A table must also pass the
// checks, now and at every change: they test what the program needs, for example that all tiers of its users
// are there. The error of a check is wrapped.
func Open(path string, checks ...func(*tiers.Store) error) (*File, error) {
	absolute, err := filepath.Abs(path) // the working directory may change
	if err != nil {
		return nil, fmt.Errorf("tiers/watch: %w", err)
	}
	f := &File{path: absolute, checks: checks, always: always}
	s, err := f.load()
	if err != nil {
		return nil, err
	}
	f.store.Store(s)
	return f, nil
}

// Store returns the last good table of the file. It is never nil. The pointer changes only if the table
// changes. The cost is one atomic load.
func (f *File) Store() *tiers.Store { return f.store.Load() }

// Watch watches the file until ctx is over, and then returns nil. Call it once, in its own goroutine. It
// returns an error at once if nothing can be watched.
//
// It calls report, one call at a time. For each new table it passes the table, after [File.Store] returns it.
// If a table cannot be used, it passes nil and the error, once per error, not at every check. When the file
// is good again after an error, it passes the table, changed or not. If report is nil, it writes to slog's
// default logger.
func (f *File) Watch(ctx context.Context, report func(*tiers.Store, error)) error {
	if report == nil {
		report = f.log
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("tiers/watch: %w", err)
	}
	defer events.Close()
	w := watcher{File: f, events: events, report: report}
	// A directory may be replaced at this moment. The first look comes soon and follows the new one.
	if err := w.follow(); err != nil && len(events.WatchList()) == 0 {
		return err
	}

	settled := time.NewTimer(quiet) // the file may have changed since Open, or be changing
	defer settled.Stop()
	ticker := time.NewTicker(f.always)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-events.Events:
			if w.way[event.Name] || w.directories[event.Name] {
				settled.Reset(quiet)
			}
		case <-events.Errors: // events were lost
			settled.Reset(quiet)
		case <-settled.C:
			w.look()
		case <-ticker.C:
			w.look()
		}
	}
}

// load reads the file as it is now.
func (f *File) load() (*tiers.Store, error) {
	s, err := tiers.LoadFile(f.path)
	if err != nil {
		return nil, err
	}
	for _, check := range f.checks {
		if err := check(s); err != nil {
			return nil, fmt.Errorf("tiers/watch: %w (in %s)", err, f.path)
		}
	}
	return s, nil
}

func (f *File) log(s *tiers.Store, err error) {
	if err != nil {
		slog.Error("tiers/watch: the tier file cannot be used, the last good one counts", "error", err)
		return
	}
	slog.Info("tiers/watch: the tier file has changed", "path", f.path, "tiers", s.Tiers())
}

// watcher is the state of one Watch.
type watcher struct {
	*File
	events *fsnotify.Watcher
	report func(*tiers.Store, error)
	failed string // the error of the last look, or ""

	way         map[string]bool // the paths that decide which file it is; see wayTo
	directories map[string]bool // the watched directories, which hold the way
}

// look reads the file, stores its table if that has changed, and reports.
func (w *watcher) look() {
	err := w.follow() // before the file is read, so that later changes are events
	s, loadErr := w.load()
	changed := loadErr == nil && !reflect.DeepEqual(s, w.Store())
	if changed {
		w.store.Store(s)
	}
	failed := ""
	switch {
	case loadErr != nil: // says more than err, a missing directory
		err, failed = loadErr, loadErr.Error()
	case err != nil:
		failed = err.Error()
	}
	if changed || failed == "" && w.failed != "" {
		w.report(w.Store(), nil)
	}
	if failed != "" && failed != w.failed {
		w.report(nil, err)
	}
	w.failed = failed
}

// follow watches the directories that hold the way to the file, and no others.
func (w *watcher) follow() error {
	w.way, w.directories = wayTo(w.path), make(map[string]bool)
	for step := range w.way {
		w.directories[filepath.Dir(step)] = true
	}
	for _, old := range w.events.WatchList() {
		if !w.directories[old] {
			_ = w.events.Remove(old) // fails if the directory is gone, and the watch with it
		}
	}
	var errs []error
	for directory := range w.directories {
		if err := w.events.Add(directory); err != nil {
			errs = append(errs, fmt.Errorf("tiers/watch: %s: %w", directory, err))
		}
	}
	return errors.Join(errs...)
}

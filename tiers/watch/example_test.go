package watch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"

	"github.com/gin-tiers/ratelimit/tiers"
	"github.com/gin-tiers/ratelimit/tiers/watch"
)

// A program says which tiers its users have. A file that lacks one is refused, now and at every change.
func ExampleOpen() {
	path := tierFile(`tiers: {free: {per_minute: 5, per_day: 100}}`)
	defer os.RemoveAll(filepath.Dir(path))
	errNoPro := errors.New("the tier pro is missing")
	hasPro := func(s *tiers.Store) error {
		if !slices.Contains(s.Tiers(), tiers.Pro) {
			return errNoPro
		}
		return nil
	}

	_, err := watch.Open(path, hasPro)
	fmt.Println(errors.Is(err, errNoPro))
	replace(path, `tiers: {free: {per_minute: 5, per_day: 100}, pro: {per_minute: 60, per_day: 5000}}`)
	_, err = watch.Open(path, hasPro)
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// A change counts while the program runs. A file that breaks a rule changes nothing.
func ExampleFile_Watch() {
	path := tierFile(`tiers: {free: {per_minute: 5, per_day: 100}}`)
	defer os.RemoveAll(filepath.Dir(path))
	file, err := watch.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	reported := make(chan error, 1)
	go file.Watch(ctx, func(_ *tiers.Store, err error) { reported <- err }) // nil writes to the log instead

	for _, perMinute := range []string{"9", "0"} {
		replace(path, `tiers: {free: {per_minute: `+perMinute+`, per_day: 100}}`)
		err := <-reported
		fmt.Println("taken:", err == nil, "per minute:", file.Store().Lookup(tiers.Free).PerMinute)
	}
	// Output:
	// taken: true per minute: 9
	// taken: false per minute: 9
}

// tierFile makes a file in a new directory.
func tierFile(text string) (path string) {
	dir, err := os.MkdirTemp("", "tiers")
	if err != nil {
		panic(err)
	}
	path = filepath.Join(dir, "tiers.yaml")
	replace(path, text)
	return path
}

// replace writes another file and renames it, so that nobody reads half of it.
func replace(path, text string) {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		panic(err)
	}
}

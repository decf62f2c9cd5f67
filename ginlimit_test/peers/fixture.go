package main

import (
	"fmt"
	"os"
	"testing"
)

// fixture is the testing.TB of a program: it lends redistest to a run that is no test. What fails ends the
// program; Close undoes what was set up. Methods that are not here are not to be called.
type fixture struct {
	testing.TB
	undo []func()
}

func (f *fixture) Helper()                     {}
func (f *fixture) Name() string                { return "peers" }
func (f *fixture) Cleanup(fn func())           { f.undo = append(f.undo, fn) }
func (f *fixture) FailNow()                    { f.Fatalf("cannot go on") }
func (f *fixture) Fatal(args ...any)           { f.Fatalf("%s", fmt.Sprint(args...)) }
func (f *fixture) Skipf(s string, args ...any) { f.Fatalf(s, args...) }
func (f *fixture) Errorf(s string, args ...any) {
	fmt.Fprintf(os.Stderr, s+"\n", args...)
}

func (f *fixture) Fatalf(s string, args ...any) {
	f.Errorf(s, args...)
	f.Close()
	os.Exit(1)
}

func (f *fixture) TempDir() string {
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Close undoes, latest first, what Cleanup was given.
func (f *fixture) Close() {
	for ; len(f.undo) > 0; f.undo = f.undo[:len(f.undo)-1] {
		f.undo[len(f.undo)-1]()
	}
}

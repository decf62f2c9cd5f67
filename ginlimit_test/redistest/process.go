package redistest

import (
	"os"
	"os/exec"
	"runtime"
)

// process is a running program that does not outlive the test binary.
type process struct {
	*os.Process
	ended chan struct{} // closed once it has ended and been waited for
}

// startProcess runs a program with its output in the file log, which it truncates.
//
// The kernel sends the parent-death signal when the thread that forked the program ends, not the whole
// parent. So one goroutine, locked to its thread, starts the program and stays until it has ended.
func startProcess(log, name string, args ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()

	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = dieWithParent()

	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is the business of whoever ended it
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return &process{Process: cmd.Process, ended: ended}, nil
}

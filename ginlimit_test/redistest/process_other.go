//go:build !linux

package redistest

import "syscall"

// dieWithParent can ask for nothing here: only Linux tells a program that its parent is gone.
func dieWithParent() *syscall.SysProcAttr { return nil }

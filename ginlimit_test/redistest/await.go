package redistest

import (
	"errors"
	"time"
)

// Healthy servers need far less than this, on a machine that has time for them.
const (
	alone    = 10 * time.Second // for a server to start or to end
	together = 30 * time.Second // for several to agree: an election that fails is held again 4 s later
)

// await asks again and again until the answer is no error or a final one, but not beyond the limit.
func await(limit time.Duration, ask func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := ask()
		if err == nil || errors.As(err, new(final)) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// final marks an error that no waiting cures.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

package redistest

import (
	"errors"
	"time"
)

// Healthy servers need far less than this, on a machine that has time for them.
const (
	startTimeout = 10 * time.Second // for a server to start or to end
	agreeTimeout = 30 * time.Second // for several to agree: an election that fails is held again 4 s later
)

// await asks again and again until the answer is no error or a permanent one, but not beyond the limit.
func await(limit time.Duration, ask func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := ask()
		if err == nil || errors.As(err, new(permanent)) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// permanent marks an error that no waiting cures.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

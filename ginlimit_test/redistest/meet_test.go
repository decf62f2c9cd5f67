package redistest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Case R48. A busy machine may give a node no time to answer a handshake, which the other end drops after a
// second.
func TestNodesMeetAfterADroppedHandshake(t *testing.T) {
	t.Parallel()
	c := startNodes(t, 3)
	late := c.Nodes[2]
	late.Pause()
	handshake := func() (id string) { // each has an id of its own
		list, _ := c.Nodes[0].do("cluster", "nodes").Text()
		for line := range strings.Lines(list) {
			if strings.Contains(line, late.Addr+"@") {
				id, _, _ = strings.Cut(line, " ")
			}
		}
		return id
	}
	go func() {
		defer late.Resume()
		dropped := ""
		_ = await(agreeTimeout, func() error {
			id := handshake()
			if dropped == "" {
				dropped = id
			}
			if id == dropped {
				return errors.New("there is no handshake yet, or still the first one")
			}
			return nil
		})
	}()
	begin := time.Now()
	c.meet(t)
	require.Greater(t, time.Since(begin), time.Second, "the handshake was dropped")
	for _, node := range c.Nodes {
		unknown, err := node.unknown(c.Nodes)
		require.NoError(t, err)
		require.Empty(t, unknown)
	}
}

package chaos

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// toxicRoad is the way to a Redis by a toxiproxy in this process.
type toxicRoad struct {
	Addr  string
	proxy *toxiproxy.Proxy
}

func newToxicRoad(t *testing.T, target string) *toxicRoad {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()) // it listens nowhere
	proxy := toxiproxy.NewProxy(server, "redis", "127.0.0.1:0", target)
	require.NoError(t, proxy.Start())
	t.Cleanup(proxy.Stop)
	return &toxicRoad{proxy.Listen, proxy}
}

// poison adds a toxic to a stream, "upstream" or "downstream", and cure removes it.
func (r *toxicRoad) poison(t *testing.T, kind, stream, attributes string) {
	t.Helper()
	toxic := fmt.Sprintf(`{"name": "toxic", "type": %q, "stream": %q, "attributes": %s}`, kind, stream, attributes)
	_, err := r.proxy.Toxics.AddToxicJson(strings.NewReader(toxic))
	require.NoError(t, err)
}

func (r *toxicRoad) cure(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	require.NoError(t, r.proxy.Toxics.RemoveToxic(ctx, "toxic"))
}

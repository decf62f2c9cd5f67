package redisclient

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// R15: whatever is wrong with an address, no error repeats a part of its user, password or host.
func TestErrorsHoldNoPartOfAnAddress(t *testing.T) {
	const user, pw, more, host = "us3rname", "s3cr", "etpw", "h0stname"
	secrets := []string{user, pw, more, host}
	fill := strings.NewReplacer("USER", user, "PW", pw, "MORE", more, "HOST", host)
	var addresses []string
	for _, form := range strings.Fields(`
		redis://:PW,MORE@HOST:6379 redis://:PW redis://USER:PW redis://USER:PW@ PW,MORE PW:MORE MORE@HOST:6379
		USER:PW@HOST:6379 USER:PW://HOST HOST HOST:port redis:/HOST redis:HOST:1
		redis://HOST:PW redis://HOST:99999 redis://HOST:0 redis://HOST,xHOST:1 redis://[HOST redis://HOST]:1
		redis://HOST/PW redis://HOST/1/PW redis://HOST/-1 redis://HOST?db=PW redis://HOST?PW redis://HOST#PW
		redis://:12?MORE redis://:12?MORE=1 redis://:12#MORE@HOST:1 redis://:12/3#MORE@HOST redis://USER/PW@HOST
		redis://:12?client_name=MORE@HOST redis://USER:PW@HOST:1?username=USER&colour=PW
		unix:// unix://HOST/s unix://USER:PW@/ http://USER:PW@HOST redis+sentinel://USER:PW@HOST:1`) {
		addresses = append(addresses, fill.Replace(form))
	}
	special := strings.Split("!\"#$%&'()*+,/:;<=>?@[\\]^`{|}~ \t\n\x00\x7f\u00e9\u20ac", "")
	for _, s := range append(special, "%zz", "%4") {
		for _, form := range strings.Fields(`
			redis://:PW_MORE@HOST:6379 redis://USER_:PW@HOST:6379 redis://USER:_PW@HOST redis://:PW_MORE
			rediss://:12_MORE@HOST:6379 redis://:PW@HOST_x:6379 unix://:PW_MORE@/s
			redis://USER:12__MORE@HOST:1?pool_size=PW HOST_:1 1_MORE@HOST:1`) {
			addresses = append(addresses, strings.ReplaceAll(fill.Replace(form), "_", s))
		}
	}
	for _, address := range addresses {
		lists := [][]string{{address}, {address, "127.0.0.1:1"}, {"127.0.0.1:1", address},
			{"redis://other:else@127.0.0.1:1", address}, {address, address}}
		for _, urls := range lists {
			for _, of := range []func(...string) (redis.UniversalClient, error){
				New, NewCluster, func(urls ...string) (redis.UniversalClient, error) { return NewSentinel("m", urls...) },
			} {
				c, err := of(urls...)
				if err == nil {
					_ = c.Close()
					continue
				}
				require.True(t, strings.HasPrefix(err.Error(), "redisclient: address "), err)
				for _, secret := range secrets {
					require.NotContains(t, err.Error(), secret, "%q", urls)
				}
			}
		}
	}
}

// R15: a character that a URL allows in a password arrives, percent-encoded or not.
func TestPasswordsArrive(t *testing.T) {
	for written, want := range map[string]string{
		"s3cr,etpw": "s3cr,etpw", "a%2Fb%3Fc%23d%40e%25f": "a/b?c#d@e%f", "a:b": "a:b", "a@b": "a@b",
		"p%20w": "p w", "$&+=!*'();": "$&+=!*'();",
	} {
		address := "redis://u:" + written + "@127.0.0.1:1"
		for _, urls := range [][]string{{address}, {address, "127.0.0.1:2"}} {
			c, err := New(urls...)
			require.NoError(t, err, written)
			require.Equal(t, want, optionsOf(t, c).FieldByName("Password").String())
		}
	}
}

// R16: other names of the schemes, and unknown ones.
func TestSchemes(t *testing.T) {
	for scheme, tls := range map[string]bool{
		"redis": false, "valkey": false, "redis+tcp": false, "REDIS": false, "Valkey": false,
		"rediss": true, "valkeys": true, "redis+tls": true, "valkey+tls": true, "redis+ssl": true,
		"valkey+ssl": true, "REDISS": true,
	} {
		for _, more := range [][]string{nil, {"127.0.0.1:2"}, {scheme + "://u:pw@127.0.0.1:2"}} {
			c, err := New(append([]string{scheme + "://u:pw@127.0.0.1:1"}, more...)...)
			require.NoError(t, err, scheme)
			o := optionsOf(t, c)
			require.Equal(t, tls, !o.FieldByName("TLSConfig").IsNil(), scheme)
			require.Equal(t, "pw", o.FieldByName("Password").String(), scheme)
		}
	}
	for _, scheme := range []string{"unix", "redis+unix", "valkey+socket", "redis-socket"} {
		c, err := New(scheme + "://u:pw@/tmp/a b@c.sock?db=3")
		require.NoError(t, err, scheme)
		o := c.(*redis.Client).Options()
		require.NoError(t, c.Close())
		require.Equal(t, []any{"unix", "/tmp/a b@c.sock", "pw", 3}, []any{o.Network, o.Addr, o.Password, o.DB})
	}
	for _, scheme := range []string{"http", "https", "tcp", "postgres", "redis2", "redis+sentinel", "valkeyss"} {
		for _, rest := range []string{"127.0.0.1:1", "user:s3cr3t@127.0.0.1:1", "user:s3c/r3t@127.0.0.1:1"} {
			_, err := New(scheme + "://" + rest)
			require.ErrorContains(t, err, `unknown scheme "`+scheme+`"`)
			_, err = New("127.0.0.1:1", scheme+"://"+rest)
			require.ErrorContains(t, err, `address 2 of 2: unknown scheme "`+scheme+`"`)
		}
	}
}

// NewCluster takes one address; several addresses of any form are one Cluster.
func TestAddressesOfACluster(t *testing.T) {
	const inQuery = "redis://u:pw@127.0.0.1:1?addr=[::1]:2&addr=127.0.0.1:3"
	for _, of := range []func() (redis.UniversalClient, error){
		func() (redis.UniversalClient, error) { return NewCluster(inQuery) },
		func() (redis.UniversalClient, error) { return New(inQuery) },
		func() (redis.UniversalClient, error) {
			return New("redis://u:pw@127.0.0.1:1/0", "[::1]:2", "valkey://127.0.0.1:3")
		},
	} {
		c, err := of()
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		o := c.(*redis.ClusterClient).Options()
		require.Equal(t, []string{"127.0.0.1:1", "[::1]:2", "127.0.0.1:3"}, o.Addrs)
		require.Equal(t, []any{"u", "pw"}, []any{o.Username, o.Password})
		require.Equal(t, []any{true, timeout, reload},
			[]any{o.ContextTimeoutEnabled, o.ReadTimeout, o.ClusterStateReloadInterval})
	}
	for _, url := range []string{"redis://127.0.0.1:1/2", "redis://127.0.0.1:1?db=2"} {
		_, err := NewCluster(url)
		require.ErrorContains(t, err, "a database other than 0")
	}
	_, err := NewCluster("unix:///s")
	require.ErrorContains(t, err, "Unix socket")
}

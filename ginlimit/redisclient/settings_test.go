package redisclient

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// makers are the ways to a client, with one address that ends in the query.
var makers = map[string]func(query string) (redis.UniversalClient, error){
	"a server":          func(q string) (redis.UniversalClient, error) { return New("127.0.0.1:1?" + q) },
	"a server, TLS":     func(q string) (redis.UniversalClient, error) { return New("rediss://127.0.0.1?" + q) },
	"a server's socket": func(q string) (redis.UniversalClient, error) { return New("unix:///s?" + q) },
	"several addresses": func(q string) (redis.UniversalClient, error) {
		return New("redis://127.0.0.1:1?"+q, "127.0.0.1:2")
	},
	"several addresses, TLS": func(q string) (redis.UniversalClient, error) {
		return New("valkeys://127.0.0.1:1?"+q, "127.0.0.1:2")
	},
	"addresses in the query": func(q string) (redis.UniversalClient, error) {
		return New("redis://127.0.0.1:1?addr=127.0.0.1:2&" + q)
	},
	"a Cluster": func(q string) (redis.UniversalClient, error) { return NewCluster("127.0.0.1:1?" + q) },
	"a Cluster, TLS": func(q string) (redis.UniversalClient, error) {
		return NewCluster("rediss://127.0.0.1?" + q)
	},
	"Sentinels": func(q string) (redis.UniversalClient, error) { return NewSentinel("m", "127.0.0.1:1?"+q) },
	"Sentinels, TLS": func(q string) (redis.UniversalClient, error) {
		return NewSentinel("m", "rediss://127.0.0.1?"+q, "127.0.0.1:2")
	},
}

// optionsOf are the client's own, *redis.Options or *redis.ClusterOptions.
func optionsOf(t *testing.T, c redis.UniversalClient) reflect.Value {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	if cluster, ok := c.(*redis.ClusterClient); ok {
		return reflect.ValueOf(cluster.Options()).Elem()
	}
	return reflect.ValueOf(c.(*redis.Client).Options()).Elem()
}

// fieldsOf go-redis's options that some of its parsers reads from a query, as name=value.
func fieldsOf(options any) map[string]string {
	all := map[string]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(options)) {
		value := map[reflect.Type]string{
			reflect.TypeFor[int]():           "2",
			reflect.TypeFor[bool]():          "true",
			reflect.TypeFor[string]():        "text",
			reflect.TypeFor[time.Duration](): "7s",
		}[f.Type]
		query := snake(f.Name) + "=" + value
		_, server := redis.ParseURL("redis://h?" + query)
		_, cluster := redis.ParseClusterURL("redis://h?" + query)
		if f.IsExported() && value != "" && (server == nil || cluster == nil) {
			all[f.Name] = query
		}
	}
	return all
}

func snake(name string) string {
	var b strings.Builder
	before := 'A'
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return b.String()
}

// R36: every setting that go-redis reads from a query reaches the client, whatever the number of addresses.
func TestEverySettingCounts(t *testing.T) {
	for maker, client := range makers {
		c, err := client("")
		require.NoError(t, err, maker)
		fields := fieldsOf(optionsOf(t, c).Interface())
		require.Greater(t, len(fields), 20, maker)
		for field, query := range fields {
			if field == "ConnMaxLifetimeJitter" {
				query += "&conn_max_lifetime=9s"
			}
			if field == "FailingTimeoutSeconds" && strings.Contains(maker, "Sentinels") {
				continue // go-redis has it for nodes of a Cluster and passes it on to no other
			}
			c, err := client(query)
			require.NoError(t, err, "%s: %s", maker, query)
			want := query[strings.IndexByte(query, '=')+1:]
			want, _, _ = strings.Cut(want, "&")
			require.Equal(t, want, fmt.Sprint(optionsOf(t, c).FieldByName(field)), "%s: %s", maker, query)
		}
	}
}

// R36: older names, a setting of TLS, and a database that is 0.
func TestSettingsOfOnlyOneParser(t *testing.T) {
	for maker, client := range makers {
		c, err := client("idle_timeout=7s&max_conn_age=9s&conn_max_lifetime_jitter=3s&db=0")
		require.NoError(t, err, maker)
		o := optionsOf(t, c)
		require.Equal(t, 7*time.Second, o.FieldByName("ConnMaxIdleTime").Interface(), maker)
		require.Equal(t, 9*time.Second, o.FieldByName("ConnMaxLifetime").Interface(), maker)
		require.Equal(t, 3*time.Second, o.FieldByName("ConnMaxLifetimeJitter").Interface(), maker)

		c, err = client("skip_verify=true")
		if o.FieldByName("TLSConfig").IsNil() {
			require.ErrorContains(t, err, "skip_verify is for TLS", maker)
			continue
		}
		require.NoError(t, err, maker)
		tls := optionsOf(t, c).FieldByName("TLSConfig").Elem()
		require.True(t, tls.FieldByName("InsecureSkipVerify").Bool(), maker)
	}
}

// R32: a duration of 0 is not given, however it is written.
func TestAZeroDurationIsNotGiven(t *testing.T) {
	for maker, client := range makers {
		c, err := client("")
		require.NoError(t, err, maker)
		plain := optionsOf(t, c)
		for field, query := range fieldsOf(plain.Interface()) {
			name, set, _ := strings.Cut(query, "=")
			if set != "7s" {
				continue
			}
			for _, zero := range []string{"0", "0s", "0ms", "00", "-0", "%2B0", "", "0h0m0.0s", "5s&" + name + "=0"} {
				c, err := client(name + "=" + zero)
				require.NoError(t, err, "%s: %s=%s", maker, name, zero)
				got := optionsOf(t, c).FieldByName(field).Interface()
				require.Equal(t, plain.FieldByName(field).Interface(), got, "%s: %s=%s", maker, name, zero)
			}
		}
	}
}

func TestSettingsRefused(t *testing.T) {
	for query, want := range map[string]string{
		"read_timeout=s3cr3t":          "read_timeout: want a duration",
		"pool_size=s3cr3t":             "pool_size: want a whole number",
		"pool_fifo=s3cr3t":             "pool_fifo: want true or false",
		"pool_size=-5":                 "pool_size: want a whole number from 0 to 1000000",
		"pool_size=99999999999":        "pool_size: want a whole number from 0 to 1000000",
		"min_idle_conns=-1":            "min_idle_conns: want a whole number from 0",
		"pipeline_read_buffer_size=-1": "pipeline_read_buffer_size: want a whole number from 0 to 1073741824",
		"max_retries=-2":               "max_retries: want a whole number from -1 to 1000000",
		"dial_timeout=-1":              "dial_timeout: want a duration above 0",
		"dial_timeout=-5ms":            "dial_timeout: want a duration above 0",
		"colour=s3cr3t":                "unexpected option: colour",
		"s3cr3t":                       "unexpected option",
		"s3cr3t=1":                     "unexpected option",
		"read_timeout=1s;s3cr3t=1":     "name=value&name=value",
		"read_timeout=%zzs3cr3t":       "name=value&name=value",
		"addr=s3cr3t":                  "addr: want host:port",
		"addr=redis%3A%2F%2Fs3cr3t:1":  "addr: want host:port",
		"addr=u%40s3cr3t:1":            "addr: want host:port",
		"db=s3cr3t":                    "database",
	} {
		for maker, client := range makers {
			if _, unix := strings.CutSuffix(maker, "socket"); unix && (query[:2] == "ad" || query[:2] == "db") {
				continue
			}
			_, err := client(query)
			require.ErrorContains(t, err, want, "%s: %s", maker, query)
			require.NotContains(t, err.Error(), "s3cr3t", "%s: %s", maker, query)
		}
	}
}

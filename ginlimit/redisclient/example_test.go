package redisclient_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
)

// One address is a server's, several are a Cluster's. No constructor connects, so servers may come up later.
func ExampleNew() {
	for _, addresses := range [][]string{
		{"redis://limiter:p%40ssword@10.0.0.1:6379/0?read_timeout=250ms"},
		{"rediss://limiter:p%40ssword@10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"},
	} {
		rdb, err := redisclient.New(addresses...)
		if err != nil {
			log.Fatal(err)
		}
		defer rdb.Close()
		_ = ginlimit.NewLimiter(rdb)
		fmt.Printf("%T\n", rdb)
	}
	// Output:
	// *redis.Client
	// *redis.ClusterClient
}

// An error names the address, the setting and the rule, and no part of a password.
func ExampleNew_errors() {
	for _, address := range []string{
		"redis://:secret@10.0.0.1:6379?read_timeout=soon",
		"redis://:secret@10.0.0.1:6379/first",
	} {
		_, err := redisclient.New(address)
		fmt.Println(err)
	}
	// Output:
	// redisclient: address 1 of 1: read_timeout: want a duration, such as 250ms, or whole seconds
	// redisclient: address 1 of 1: the database, behind the host's / or as db=, is not one number, 0 or above
}

// One address is enough to find the others.
func ExampleNewCluster() {
	rdb, err := redisclient.NewCluster("rediss://limiter:p%40ssword@10.0.0.1:6379")
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	fmt.Printf("%T\n", rdb)

	_, err = redisclient.NewCluster("redis://10.0.0.1:6379/2")
	fmt.Println(err)
	// Output:
	// *redis.ClusterClient
	// redisclient: address 1 of 1: a database other than 0, which is the only one of a Cluster
}

// The Sentinels know which server is the master. Their own password stands in the address, and the servers'
// is a setting.
func ExampleNewSentinel() {
	rdb, err := redisclient.NewSentinel("mymaster",
		"redis://:sentinels@10.0.0.1:26379/0?username=limiter&password=servers",
		"10.0.0.2:26379", "10.0.0.3:26379")
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	fmt.Printf("%T\n", rdb)

	_, err = redisclient.NewSentinel("", "redis://10.0.0.1:26379")
	fmt.Println(err)
	// Output:
	// *redis.Client
	// redisclient: no name of a master; want the one that the Sentinels monitor
}

// A service looks at its server once, at start, and serves whatever is found: limits work or fail without it.
func ExampleSelfCheck() {
	rdb, err := redisclient.New("redis://localhost:6379")
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := redisclient.SelfCheck(ctx, rdb); err != nil {
		slog.Warn("Redis is not as the limiter needs it", "error", err) // a line for each problem
	}
}

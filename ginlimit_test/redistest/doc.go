// Package redistest gives each test a real Redis of its own: a server, a Cluster or a Sentinel set on
// loopback, which it may kill, pause and restart, and a [Proxy] that may be slow, be cut off or lose replies.
//
//	func TestAnswersWhileRedisHangs(t *testing.T) {
//		t.Parallel()
//		redis := redistest.Start(t)
//		limiter := ginlimit.NewLimiter(redis.Client(t))
//		redis.Pause()
//		…
//	}
//
// What a test starts here ends with that test, whether it passes or fails, and dies with the test binary (on
// Linux even when that is killed). Whatever goes wrong with a server is fatal to the test that started it,
// and shows the server's log.
//
// It needs Redis 7.0 or newer as redis-server on PATH, and a Unix system. The environment may ask for more,
// or for less:
//
//	RATELIMIT_TEST_REQUIRE_REDIS=1      without a redis-server the tests fail; otherwise they are skipped
//	RATELIMIT_TEST_REDIS_URL=redis://…  the Redis that Client connects to, instead of a private server
package redistest

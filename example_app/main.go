// The example app is a chat-completion service that limits its callers by tier with ginlimit. Its
// API follows OpenAI's, so that an OpenAI SDK pointed at it works unchanged:
//
//	go run ./example_app
//	curl -i http://127.0.0.1:8080/v1/chat/completions -H 'Authorization: Bearer sk-free-demo' \
//	  -d '{"model": "any", "messages": [{"role": "user", "content": "Hello there"}]}'
//
// routes.go shows how the limiter is mounted, config.go what the environment may set.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers/watch"
)

// drainTime is how long open responses may go on after SIGTERM.
const drainTime = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	redis.SetLogger(&redisLog{})
	done, err := readArguments(os.Args[1:], os.Stdout)
	var logger *slog.Logger
	if err == nil {
		logger, err = newLogger(strings.TrimSpace(os.Getenv("LOG_FORMAT")), os.Stderr)
	}
	if logger != nil {
		slog.SetDefault(logger)
	}
	if err == nil && !done {
		err = run(ctx, os.Getenv, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "example_app:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends and then drains. It is main without the process, for tests.
func run(ctx context.Context, getenv func(string) string, stdout io.Writer) error {
	cfg, err := loadConfigUntil(ctx, getenv)
	if err != nil && ctx.Err() != nil {
		return nil // stopped before there was anything to drain
	}
	if err != nil {
		return err
	}
	limiter, closeLimiter, err := newLimiter(ctx, cfg.redisURLs)
	if err != nil {
		return err
	}
	defer closeLimiter()

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.listenAddr)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("LISTEN_ADDR %q: %w", cfg.listenAddr, err)
	}
	if len(cfg.redisURLs) == 0 {
		slog.Info("REDIS_URL is not set: limits are kept in memory and hold for this process only")
	}
	for _, tier := range cfg.droppedTiers {
		slog.Warn("a demo key is not accepted: TIERS_FILE does not have its tier, and API_KEYS is not set",
			"tier", tier)
	}
	if cfg.tierFile != nil {
		go watchTiers(ctx, cfg.tierFile)
	}
	slog.Info("serving", "version", buildVersion())
	gin.SetMode(gin.ReleaseMode)
	fmt.Fprintf(stdout, "listening on http://%s\n", listener.Addr())
	return serve(ctx, newServer(cfg, limiter), listener, drainTime)
}

// watchTiers lets a changed tier file count, until ctx ends.
func watchTiers(ctx context.Context, file *watch.File) {
	if err := file.Watch(ctx, nil); err != nil {
		slog.Error("TIERS_FILE cannot be watched, so a change of it counts after a restart", "error", err)
	}
}

// loadConfigUntil is loadConfig that waits no longer than ctx: a tier file may be on a disk that hangs. What
// it left behind then ends with the process.
func loadConfigUntil(ctx context.Context, getenv func(string) string) (config, error) {
	type result struct {
		config
		error
	}
	loaded := make(chan result, 1)
	go func() {
		cfg, err := loadConfig(getenv)
		loaded <- result{cfg, err}
	}()
	select {
	case r := <-loaded:
		return r.config, r.error
	case <-ctx.Done():
		return config{}, ctx.Err()
	}
}

func newServer(cfg config, limiter *ginlimit.Limiter) *http.Server {
	return &http.Server{
		Handler:           newRouter(cfg, limiter),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// No WriteTimeout: a streamed answer may take minutes. endStalled bounds every write instead.
	}
}

// serve answers requests until ctx ends. It then refuses new connections and gives open responses
// the drain time to finish.
func serve(ctx context.Context, server *http.Server, listener net.Listener, drain time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}

	slog.Info("draining: no new connections, open responses may finish", "at_most", drain)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		slog.Warn("drain time is over: cutting the responses that are still open")
		return server.Close()
	}
	return err
}

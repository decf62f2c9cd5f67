package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"text/tabwriter"
)

// setting is a variable of the environment.
type setting struct{ name, meaning, byDefault string }

// settings are all of them, as -h shows them.
func settings() []setting {
	return []setting{
		{"LISTEN_ADDR", "where it listens, host:port; port 0 is any free one", "127.0.0.1:8080"},
		{"REDIS_URL", "redis:// or rediss://; several, with commas, are a Cluster", "none: memory, one process"},
		{"FAILURE_POLICY", "when Redis fails: closed (503), open, or local (memory)", "closed"},
		{"API_KEYS", "key=user:tier,...; a key is the bearer token", "three demo keys"},
		{"TIERS_FILE", "a YAML file of tiers; a change counts at once", "the built-in table"},
		{"PRICES_FILE", "a YAML file of what models cost", "none"},
		{"RATE_LIMIT_DISABLED", "true switches all limits off", "limits are on"},
		{"ADMIN_TOKEN", "the bearer token of /admin", "none: only with demo keys"},
		{"UPSTREAM_BASE_URL", "an OpenAI-compatible provider, ending in /v1", "the built-in model"},
		{"UPSTREAM_API_KEY", "the owner's key at the provider", "none"},
		{"UPSTREAM_PER_MINUTE", "the provider's cap: requests to models, of all callers", "none"},
		{"UPSTREAM_TOKENS_PER_MINUTE", "the provider's cap: tokens of all callers", "none"},
		{"UPSTREAM_CONCURRENT", "the provider's cap: requests in progress, of all callers", "none"},
		{"UPSTREAM_SHARES", "how much of the caps a tier may use, tier=share,...", "all of it, 1"},
		{"MAX_BODY_BYTES", "the largest request body", fmt.Sprint(defaultMaxBody)},
		{"LOG_FORMAT", "text or json", "text"},
	}
}

// readArguments answers -h and -version, and reports whether there is nothing more to do.
func readArguments(args []string, stdout io.Writer) (done bool, err error) {
	flags := flag.NewFlagSet("example_app", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	version := flags.Bool("version", false, "")
	err = flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return true, writeHelp(stdout)
	case err != nil:
		return false, fmt.Errorf("%w; -h shows what there is", err)
	case flags.NArg() > 0:
		return false, errors.New("takes no arguments; settings come from the environment, -h shows them")
	case *version:
		_, err = fmt.Fprintln(stdout, "example_app", buildVersion())
	}
	return *version, err
}

func writeHelp(w io.Writer) error {
	fmt.Fprint(w, "example_app is a chat-completion service that limits its callers by tier.\n\n"+
		"  -h        shows this\n  -version  shows the version\n\nSettings come from the environment:\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range settings() {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", s.name, s.meaning, s.byDefault)
	}
	return table.Flush()
}

// buildVersion is what the build has noted: a version, the commit where there is no version, and Go's.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			version = "commit " + s.Value
		}
	}
	return version + " " + info.GoVersion
}

package headers_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/headers"
)

// What a response says in each dialect. The package needs no limiter: a service may fill in what it knows.
func ExampleDialect_Write() {
	minute := headers.Budget{
		Name: "minute", Unit: headers.Requests, Window: time.Minute,
		Limit: 5, Remaining: 4, Reset: time.Minute, Asked: true,
	}
	response := headers.Response{
		Requests: minute, Budgets: []headers.Budget{minute},
		Now: time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC),
	}
	for _, dialect := range []*headers.Dialect{
		headers.Default, headers.IETF, headers.OpenAI, headers.Anthropic,
	} {
		h := http.Header{}
		dialect.Write(h, &response)
		for _, name := range slices.Sorted(maps.Keys(h)) {
			fmt.Printf("%s: %s\n", name, h.Get(name))
		}
	}
	// Output:
	// X-Ratelimit-Limit: 5
	// X-Ratelimit-Remaining: 4
	// X-Ratelimit-Window: minute
	// Ratelimit: "minute";r=4;t=60
	// Ratelimit-Policy: "minute";q=5;w=60
	// X-Ratelimit-Limit-Requests: 5
	// X-Ratelimit-Remaining-Requests: 4
	// X-Ratelimit-Reset-Requests: 1m0s
	// Anthropic-Ratelimit-Requests-Limit: 5
	// Anthropic-Ratelimit-Requests-Remaining: 4
	// Anthropic-Ratelimit-Requests-Reset: 2026-01-01T12:01:00Z
}

// A dialect of your own, for ginlimit.WithHeaders. It names all headers that it may set, so that they can
// be removed where nothing was decided.
func ExampleNew() {
	dialect := headers.New(func(h http.Header, r headers.Response) {
		h.Set("Quota-Left", strconv.Itoa(r.Requests.Remaining))
		if r.Rejected.Name != "" {
			h.Set("Quota-Exceeded", headers.PolicyName(r.Rejected))
		}
	}, "Quota-Left", "Quota-Exceeded")

	images := headers.Budget{Name: "day", Scope: "images", Unit: headers.Requests, Limit: 10}
	h := http.Header{}
	dialect.Write(h, &headers.Response{Requests: images, Rejected: images})
	fmt.Println(h)
	dialect.Remove(h)
	fmt.Println(h)
	// Output:
	// map[Quota-Exceeded:[images:day] Quota-Left:[0]]
	// map[]
}

// A request has passed two limiters with a budget of the minute: the tighter one stands for both.
func ExampleMerge() {
	api := []headers.Budget{
		{Name: "minute", Limit: 60, Remaining: 8, Asked: true},
		{Name: "day", Limit: 5000, Remaining: 4000, Asked: true},
	}
	route := []headers.Budget{{Name: "minute", Limit: 10, Remaining: 3, Asked: true}}
	for _, b := range headers.Merge(api, route) {
		fmt.Println(headers.PolicyName(b), b.Remaining, "of", b.Limit)
	}
	// Output:
	// minute 3 of 10
	// day 4000 of 5000
}

package page_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var screenshots = flag.String("screenshots", "", "the folder to write screenshots to; none are made if empty")

// patience is how long a step of the browser may take. It needs far less.
const patience = 60 * time.Second

// tab is a browser's tab, and what went wrong in it.
type tab struct {
	context.Context
	mu       sync.Mutex
	problems []string
}

// openTab starts a browser and opens a page of width by height pixels, in a color scheme. At the end of the
// test it checks that the console told of no error but answers of expected statuses: browsers report those,
// whatever the page does with them.
func openTab(t *testing.T, url string, width, height int64, scheme string, expected ...int) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)),
		chromedp.NoSandbox, chromedp.WSURLReadTimeout(patience))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{Context: ctx}
	console := chromedp.Console(ctx)
	go func() { // until the browser ends
		for message, err := range console {
			if err == nil {
				b.hear(message, expected)
			}
		}
	}()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}, // a screenshot shows where bars end
		},
	})
	require.NoError(t, err)
	b.do(t, chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Empty(t, b.problems, "the console tells of errors")
	})
	return b
}

// hear keeps a message of the console that tells of a problem.
func (b *tab) hear(m chromedp.ConsoleMessage, expected []int) {
	if !m.IsException() && m.Type != "error" && m.Type != "warning" {
		return
	}
	for _, status := range expected {
		if m.Source == "network" && strings.Contains(m.Text, fmt.Sprint("status of ", status)) {
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, m.String())
}

// chromium is the browser's path. Without one the test is skipped, or fails where it is required.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("RATELIMIT_TEST_REQUIRE_CHROMIUM") == "1" {
		require.FailNow(t, "there is no chromium on PATH")
	}
	t.Skip("there is no chromium on PATH")
	return ""
}

// do runs actions, with patience.
func (b *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, patience)
	defer cancel()
	require.NoError(t, chromedp.Do(ctx, actions...))
}

// ask returns what an expression of JavaScript is.
func ask[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err)
	return value
}

// text is what an element shows, "" where it shows nothing.
func (b *tab) text(t *testing.T, selector string) string {
	t.Helper()
	return ask[string](t, b, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

// wait waits until an element's text holds part.
func (b *tab) wait(t *testing.T, selector, part string) {
	t.Helper()
	b.until(t, selector+" holds "+part, func() bool { return strings.Contains(b.text(t, selector), part) })
}

func (b *tab) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.screenshot(t, t.Name()+"-failed")
			require.FailNow(t, "waited too long until "+what, "%s", b.text(t, "body"))
		}
	}
}

func (b *tab) click(t *testing.T, selector string) {
	t.Helper()
	b.do(t, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible, chromedp.NodeEnabled))
}

// screenshot writes the whole page as name.png, where the flag asks for it.
func (b *tab) screenshot(t *testing.T, name string) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	png, err := chromedp.Run(b.Context, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	file := filepath.Join(*screenshots, strings.ReplaceAll(name, "/", "-")+".png")
	require.NoError(t, os.WriteFile(file, png, 0o644))
}

package page_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/apptest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

const minute = `#budgets [data-window="minute"]`

// opensIn moves what the free demo user has sent into the past, so that its minute opens in so long.
func opensIn(t *testing.T, rdb *redis.Client, d time.Duration) {
	t.Helper()
	const key = "ratelimit:user_free:60"
	now, err := rdb.Time(t.Context()).Result()
	require.NoError(t, err)
	entries, err := rdb.ZRange(t.Context(), key, 0, -1).Result()
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, member := range entries {
		moved := redis.Z{Score: float64(now.Add(d - time.Minute).UnixMilli()), Member: member}
		require.NoError(t, rdb.ZAddXX(t.Context(), key, moved).Err())
	}
}

// A user sends until rejected, sees the countdown, and sees it open again.
func TestSendUntilRejected(t *testing.T) {
	server := redistest.Start(t)
	app := apptest.Start(t, apptest.Build(t), "REDIS_URL="+server.URL())
	b := openTab(t, app.URL, 1440, 900, "light", 429)
	b.wait(t, "#signed-in", "User user_free, tier free")
	b.wait(t, minute, "5 of 5 left")
	b.wait(t, `#budgets [data-window="day"]`, "100 of 100 left")

	b.click(t, "#send")
	b.wait(t, "#reply", "You said: Hello there, how are you today?")
	b.wait(t, minute, "4 of 5 left")
	require.Contains(t, b.text(t, "#decisions li"), "200 admitted")
	require.Contains(t, b.text(t, "#decisions li"), "minute: 4 of 5 left")

	b.click(t, "#stream")
	b.do(t, chromedp.SetValue(chromedp.CSS("#message"), "Say this word by word"))
	b.click(t, "#send")
	b.wait(t, "#reply", "You said: Say this word by word")
	b.wait(t, minute, "3 of 5 left")
	require.Contains(t, b.text(t, "#decisions li"), "stream")

	b.click(t, "#burst")
	b.wait(t, "#notice", "Rate limit exceeded: 5 requests per minute.")
	require.Regexp(t, `Open again in \d+ s\.`, b.text(t, "#notice"))
	require.Contains(t, ask[string](t, b, `document.getElementById("said").textContent`), "Rate limit exceeded")
	b.wait(t, minute, "0 of 5 left, again in")
	require.Equal(t, 6, ask[int](t, b, `document.querySelectorAll("#decisions li").length`))
	b.click(t, "#decisions li:first-child summary")
	for _, header := range []string{"retry-after\n", "x-ratelimit-remaining\n0", "cache-control\nno-store"} {
		require.Contains(t, b.text(t, "#decisions li"), header)
	}
	b.screenshot(t, "page-rejected")

	opensIn(t, server.Client(t), 8*time.Second)
	b.until(t, "Retry-After is of the moved window", func() bool {
		b.click(t, "#send")
		b.wait(t, "#decisions li", "Retry-After: ")
		seconds := regexp.MustCompile(`Retry-After: (\d+)`).FindStringSubmatch(b.text(t, "#decisions li"))[1]
		wait, err := strconv.Atoi(seconds)
		require.NoError(t, err)
		return wait <= 8
	})
	first := b.text(t, "#countdown")
	require.Regexp(t, `^Open again in [1-8] s\.$`, first)
	b.until(t, "the countdown runs", func() bool { return b.text(t, "#countdown") != first })
	b.wait(t, `#notice[data-state="open"]`, "The minute budget is open again.")
	require.Contains(t, ask[string](t, b, `document.getElementById("said").textContent`), "open again")
	b.wait(t, minute, "5 of 5 left")
	b.click(t, "#send")
	b.wait(t, minute, "4 of 5 left")
	require.Contains(t, b.text(t, "#decisions li"), "200 admitted")

	b.click(t, `#tiers input[value="pro"]`)
	b.wait(t, "#signed-in", "User user_pro, tier pro")
	b.wait(t, minute, "60 of 60 left")
}

// With keys of one's own the page asks for one, and keeps it nowhere but in memory.
func TestOwnKey(t *testing.T) {
	const own = "sk-own-of-the-test"
	app := apptest.Start(t, apptest.Build(t), "API_KEYS="+own+"=me:pro")
	b := openTab(t, app.URL, 360, 740, "dark", 401)
	typed := func(key string) {
		b.do(t, chromedp.WaitVisible(chromedp.CSS("#key-form")),
			chromedp.SendKeys(chromedp.CSS("#key"), key+kb.Enter))
	}
	typed("sk-wrong")
	b.wait(t, "#usage-problem", "The API key is not valid.")
	typed(own)
	b.wait(t, "#signed-in", "User me, tier pro")
	b.wait(t, minute, "60 of 60 left")
	b.click(t, "#send")
	b.wait(t, "#reply", "You said")

	kept := ask[string](t, b, `JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie,
		document.getElementById("key").value, location.href, document.documentElement.outerHTML])`)
	require.NotContains(t, kept, own)
	require.True(t, strings.HasPrefix(kept, "[{},{},\"\",\"\","), kept[:100])
	b.click(t, "#forget")
	b.do(t, chromedp.WaitVisible(chromedp.CSS("#key-form")))
	require.Empty(t, b.text(t, minute))
	typed(own)
	b.wait(t, minute, "59 of 60 left")
	b.do(t, chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS("#key-form")))
}

// The provider's cap is shown as far as a tier may use it, and the shares of the tiers.
func TestProvidersCap(t *testing.T) {
	app := apptest.Start(t, apptest.Build(t), "UPSTREAM_PER_MINUTE=10", "UPSTREAM_SHARES=free=0.3,pro=0.6")
	b := openTab(t, app.URL, 360, 740, "light", 503)
	const cap = `#upstream-budgets [data-window="upstream-minute"]`
	b.wait(t, cap, "requests per minute\n3 of 3 left")
	require.Contains(t, b.text(t, "#shares"), "free 30 %, pro 60 %")
	b.click(t, "#burst")
	b.wait(t, "#notice", "The provider is at its capacity.")
	b.wait(t, "#decisions li", "503 unavailable")
	b.wait(t, cap, "0 of 3 left")
	b.wait(t, minute, "2 of 5 left")
	b.click(t, `#tiers input[value="pro"]`)
	b.wait(t, cap, "3 of 6 left")
	b.screenshot(t, "page-cap")
}

// Everything can be reached and done by keyboard, and everything has a name for a screen reader.
func TestKeyboardAndScreenReader(t *testing.T) {
	app := apptest.Start(t, apptest.Build(t))
	b := openTab(t, app.URL, 360, 740, "light")
	b.wait(t, minute, "5 of 5 left")
	var reached []string
	for range 7 {
		b.do(t, chromedp.KeyEvent(kb.Tab))
		reached = append(reached, ask[string](t, b,
			`document.activeElement.id || document.activeElement.value || document.activeElement.className`))
		require.NotEqual(t, "none", ask[string](t, b, `getComputedStyle(document.activeElement).outlineStyle`),
			"the focus is seen")
	}
	require.Equal(t, []string{"skip", "theme", "free", "message", "stream", "send", "burst"}, reached)
	b.do(t, chromedp.Focus(chromedp.CSS("#send")), chromedp.KeyEvent(kb.Enter))
	b.wait(t, "#reply", "You said")
	b.do(t, chromedp.Focus(chromedp.CSS("#decisions summary")), chromedp.KeyEvent(kb.Enter))
	b.wait(t, "#decisions dl", "x-ratelimit-limit")

	tree, err := chromedp.Call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	require.NoError(t, err)
	roles := map[string]int{}
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		role := strings.Trim(string(node.Role.Value), `"`)
		switch role {
		case "button", "radio", "checkbox", "textbox", "progressbar", "progressIndicator", "region", "heading":
			require.NotNil(t, node.Name, role)
			require.NotEqual(t, `""`, string(node.Name.Value), role)
			roles[role]++
		}
	}
	require.Equal(t, 3, roles["radio"], roles)
	require.Equal(t, 4, roles["region"], roles)
	require.Equal(t, 2, roles["progressbar"]+roles["progressIndicator"], roles)
}

// The page fits a phone and a large screen, and can be read in light and in dark.
func TestFits(t *testing.T) {
	binary := apptest.Build(t)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1440} {
			name := fmt.Sprintf("page-%d-%s", width, scheme)
			t.Run(name, func(t *testing.T) {
				b := openTab(t, apptest.Start(t, binary).URL, width, 800, scheme, 429)
				b.wait(t, minute, "5 of 5 left")
				b.click(t, "#burst")
				b.wait(t, "#notice", "Open again in")
				b.wait(t, minute, "0 of 5 left")
				require.LessOrEqual(t, ask[int64](t, b, `document.documentElement.scrollWidth`), width)
				require.GreaterOrEqual(t, ask[float64](t, b, contrast), 4.5)
				dark := ask[bool](t, b, isDark)
				require.Equal(t, scheme == "dark", dark)
				require.Equal(t, dark, ask[bool](t, b, `document.getElementById("theme").ariaPressed === "true"`))
				b.screenshot(t, name)

				b.click(t, "#theme")
				require.Equal(t, !dark, ask[bool](t, b, isDark))
				require.GreaterOrEqual(t, ask[float64](t, b, contrast), 4.5)
				b.click(t, "#theme")
				require.Equal(t, dark, ask[bool](t, b, isDark))
			})
		}
	}
}

// isDark is whether the page's background is.
const isDark = `(() => {
	const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).map(Number);
	return r + g + b < 300;
})()`

// contrast is the lowest of all texts to what is behind them, as WCAG 2.2 computes it.
const contrast = `(() => {
	const light = (color) => {
		const [r, g, b] = color.match(/[\d.]+/g).map((v) => {
			const c = Number(v) / 255;
			return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
		});
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		const color = getComputedStyle(e).backgroundColor;
		return color === "rgba(0, 0, 0, 0)" && e.parentElement ? behind(e.parentElement) : color;
	};
	const seen = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && !e.disabled &&
		[...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim() !== ""));
	return Math.min(...seen.map((e) => {
		const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
		return (a + 0.05) / (b + 0.05);
	}));
})()`

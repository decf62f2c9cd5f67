package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/openai"
)

func TestPrices(t *testing.T) {
	t.Parallel()
	const file = "# money per million tokens\n---\ngpt-4o: {input: 2.50, cached_input: 1.25, output: 10}\n" +
		"org/model:\n  input: 0   # free\n  output: 0.000001\n"
	got, err := loadPrices(tierFile(t, file))
	require.NoError(t, err)
	require.Equal(t, priceTable{
		"gpt-4o":    openai.Price{Input: 2_500_000, CachedInput: 1_250_000, Output: 10_000_000},
		"org/model": openai.Price{Output: 1},
	}, got)
	got, err = parsePrices([]byte(`{"gpt-4o": {"input": 2.5, "output": 1000000}}`))
	require.NoError(t, err)
	require.Equal(t, priceTable{"gpt-4o": openai.Price{Input: 2_500_000, Output: maxPrice}}, got)
	got, err = parsePrices([]byte("\ufeffgpt-4o: {input: 2.5, output: 1}"))
	require.NoError(t, err)
	require.Contains(t, got, "gpt-4o", "as some editors write files")
}

// What is wrong with a price file is told in one line that names model, field, value and rule.
func TestBadPrices(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"":                           "the file names no model",
		"# nothing":                  "the file names no model",
		"{}":                         "the file names no model",
		"null":                       "null was used where mapping is expected",
		"- a":                        "sequence was used where mapping is expected",
		"gpt":                        "string was used where mapping is expected",
		"gpt: 3":                     "int was used where mapping is expected",
		"gpt: {input: 1":             "could not find flow mapping end token",
		"gpt:":                       `model "gpt": input: is missing`,
		"gpt: {output: 1}":           `model "gpt": input: is missing`,
		"gpt: {input: 1}":            `model "gpt": output: is missing`,
		"gpt: {input: 1, input: 2}":  `"input" already defined`,
		"gpt: {input: 1}\ngpt: {}":   `"gpt" already defined`,
		"gpt: {in: 1}":               `model "gpt": "in": unknown field`,
		"gpt: {Input: 1}":            `model "gpt": "Input": unknown field`,
		"gpt: {input: -1}":           `model "gpt": input: want an amount from 0 to 1000000.00, got "-1"`,
		"gpt: {input: 1000000.01}":   `model "gpt": input: want an amount from 0 to 1000000.00, got "1000000.01"`,
		"gpt: {input: 0.0000001}":    `at most 6 decimals (2.50), got "0.0000001"`,
		`gpt: {input: "2"}`:          `got "\"2\""`,
		"gpt: {input: 1e3}":          `got "1e3"`,
		"gpt: {input: 0x10}":         `got "0x10"`,
		"gpt: {input: .inf}":         `got ".inf"`,
		"gpt: {input: ~}":            `model "gpt": input: want an amount`,
		"gpt: {input: [1]}":          `got "[1]"`,
		"gpt: {input: {a: 1}}":       `got "{a: 1}"`,
		"gpt: {input: !!float 3}":    `got "!!float 3"`,
		`"": {input: 1, output: 1}`:  `model "": want a name`,
		`"a b": {input: 1}`:          `model "a b": want a name`,
		"\"gpt\\u200b\": {input: 1}": `model "gpt\u200b": want a name`,
		"a: {input: 1, output: 1}\n---\nb: {input: 1, output: 1}": "line 2: a second document",
		"a: {input: 1, output: 1}\n...\nb: c":                     "line 2: a second document",
		strings.Repeat("#", maxPricesFile+1):                      "larger than 256 KiB",
		"a: {input: " + strings.Repeat("9", 1000) + "}":           `model "a": input`,
	} {
		_, err := loadPrices(tierFile(t, file))
		require.ErrorContains(t, err, want, "%.80s", file)
		require.NotContains(t, err.Error(), "\n")
		require.Less(t, len(err.Error()), 700)
	}
}

func TestPricesAreNoFile(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for _, path := range []string{fifo, filepath.Dir(fifo), "/dev/zero", fifo + "/none", "no/such/file"} {
		_, err := loadConfig(env{"PRICES_FILE": path}.get)
		require.ErrorContains(t, err, "PRICES_FILE: ")
		require.ErrorContains(t, err, path)
	}
}

// A budget of money in front of a provider needs prices: without them it would never be used up.
func TestMoneyNeedsPrices(t *testing.T) {
	t.Parallel()
	e := env{
		"API_KEYS": "sk-own=me:free", "UPSTREAM_BASE_URL": "http://localhost/v1",
		"TIERS_FILE": tierFile(t, "tiers: {free: {per_minute: 1, per_day: 2, spend_per_month: 2.50}}"),
	}
	_, err := loadConfig(e.get)
	require.EqualError(t, err, `PRICES_FILE: must be set: tier "free" has spend_per_month, `+
		`and without prices nothing is spent`)
	e["PRICES_FILE"] = tierFile(t, "gpt-4o: {input: 2.50, output: 10}")
	_, err = loadConfig(e.get)
	require.NoError(t, err)
	delete(e, "PRICES_FILE")
	delete(e, "UPSTREAM_BASE_URL")
	_, err = loadConfig(e.get)
	require.NoError(t, err, "the built-in model has prices of its own")
}

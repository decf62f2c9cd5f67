package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin/binding"

	"github.com/gin-tiers/ratelimit/ginlimit/openai"
	"github.com/gin-tiers/ratelimit/tiers"
)

// priceTable says what a million tokens of a model cost, by the beginning of the model's name.
type priceTable map[string]openai.Price

const (
	maxPricesFile = 256 << 10 // bytes
	// maxPrice bounds a price, so that no sum of one request comes near the end of tiers.Money.
	maxPrice = 1_000_000 * tiers.Money(1_000_000)
)

// demoPrices are those of the built-in model, so that money budgets can be tried out without a file.
func demoPrices() priceTable {
	return priceTable{"": {Input: 1_000_000, CachedInput: 1_000_000, Output: 2_000_000}}
}

// loadPrices reads a price table:
//
//	gpt-4o: {input: 2.50, cached_input: 1.25, output: 10.00}
//	gpt-4o-mini: {input: 0.15, output: 0.60}
//
// It is as strict as a tier file is. An error is one line.
func loadPrices(path string) (priceTable, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe may block for ever
		return nil, fmt.Errorf("%s is not a regular file (%s)", path, info.Mode())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPricesFile+1))
	if err != nil {
		return nil, err
	}
	table, err := parsePrices(text)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return table, nil
}

// parsePrices keeps numbers as they are written: a float would not hold every amount.
func parsePrices(text []byte) (priceTable, error) {
	if len(text) > maxPricesFile {
		return nil, errors.New("the file is larger than 256 KiB")
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors write it
	if err := oneDocument(text); err != nil {
		return nil, err
	}
	var rows map[string]map[string]written
	err := binding.YAML.BindBody(text, &rows)
	switch {
	case errors.Is(err, io.EOF), err == nil && len(rows) == 0:
		return nil, errors.New("the file names no model")
	case err != nil:
		problem, _, _ := strings.Cut(err.Error(), "\n") // what follows is an excerpt of the file
		return nil, errors.New(strings.ToValidUTF8(clip(problem, 300), "?"))
	}
	table := priceTable{}
	for _, model := range slices.Sorted(maps.Keys(rows)) { // so that of several errors it is always the same
		if table[model], err = newPrice(model, rows[model]); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// written is a YAML value as it stands in the file.
type written string

func (w *written) UnmarshalYAML(text []byte) error {
	*w = written(strings.TrimSpace(string(text)))
	return nil
}

var modelName = regexp.MustCompile(`^[!-~]{1,128}$`)

func newPrice(model string, fields map[string]written) (openai.Price, error) {
	fail := func(field, rule string) (openai.Price, error) {
		return openai.Price{}, fmt.Errorf("model %s: %s", shown(model), strings.TrimPrefix(field+": "+rule, ": "))
	}
	if !modelName.MatchString(model) {
		return fail("", "want a name of 1 to 128 visible ASCII characters")
	}
	var p openai.Price
	known := map[string]*tiers.Money{"input": &p.Input, "cached_input": &p.CachedInput, "output": &p.Output}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		amount, ok := known[field]
		if !ok {
			return fail(shown(field), "unknown field, want input, cached_input and output")
		}
		value := string(fields[field])
		if err := amount.UnmarshalText([]byte(value)); err != nil {
			return fail(field, "want an amount with at most 6 decimals (2.50), got "+shown(value))
		}
		if *amount < 0 || *amount > maxPrice {
			return fail(field, fmt.Sprintf("want an amount from 0 to %s, got %s", maxPrice, shown(value)))
		}
	}
	for _, field := range []string{"input", "output"} {
		if _, ok := fields[field]; !ok {
			return fail(field, "is missing")
		}
	}
	return p, nil
}

// oneDocument refuses a second document, which the decoder would not look at.
func oneDocument(text []byte) error {
	begun := false
	for i, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimRight(line, " \t\r")
		marker := bytes.Equal(line, []byte("...")) || bytes.Equal(line, []byte("---")) ||
			bytes.HasPrefix(line, []byte("--- ")) || bytes.HasPrefix(line, []byte("---\t"))
		if marker && begun {
			return fmt.Errorf("line %d: a second document; a price file is one", i+1)
		}
		begun = begun || marker || len(line) > 0 && line[0] != '#'
	}
	return nil
}

// shown repeats a part of a file in an error: quoted, and never long.
func shown(text string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(clip(text, 80), "?")) }

package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCount(t *testing.T) {
	t.Parallel()
	tokens := newTokenizer()
	for text, want := range map[string]int{
		"":                          0,
		"Hello, world!":             4,
		"Hello there, how are you?": 7,
		"漢字":                        2,
	} {
		require.Equal(t, want, tokens.count(text), text)
	}
}

// Counting in pieces changes nothing where blanks divide the text.
func TestCountOfLongText(t *testing.T) {
	t.Parallel()
	tokens := newTokenizer()
	words := []string{"Rate", "limits,", "counted", "42", "1234567", "(exactly)", "漢字", "don't", "é",
		"https://example.com/a?b=c", "\n", "\n\nNext:", "\ttab"}
	var text strings.Builder
	for range 5_000 {
		text.WriteString(" " + words[rand.IntN(len(words))])
	}
	want, err := tokens.codec.Count(text.String())
	require.NoError(t, err)
	require.Equal(t, want, tokens.count(text.String()))
}

// Hostile texts are counted in time that grows with their length only.
func TestCountOfHostileText(t *testing.T) {
	t.Parallel()
	tokens := newTokenizer()
	for _, pattern := range []string{
		"a", "A", " ", " \n", "\n \t", "  x", "\u00a0\n", "!", "漢", "\U0001f600", "\u0301", "\x00",
	} {
		text := strings.Repeat(pattern, (128<<10)/len(pattern))
		began := time.Now()
		n := tokens.count(text)
		require.Less(t, time.Since(began), 4*time.Second, "%q", pattern) // if all at once, 11 s for the worst
		require.Positive(t, n)
		require.LessOrEqual(t, n, len(text))
	}
}

func TestCountConcurrently(t *testing.T) {
	t.Parallel()
	tokens := newTokenizer()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if n := tokens.count("Hello, world!"); n != 4 {
				t.Errorf("%d tokens, want 4", n)
			}
		})
	}
	all.Wait()
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	tokens := newTokenizer()
	for limit, want := range []string{"", "Hello", "Hello,", "Hello, world", "Hello, world!", "Hello, world!"} {
		got, shorter := tokens.truncate("Hello, world!", limit)
		require.Equal(t, want, got)
		require.Equal(t, limit < 4, shorter)
	}
	got, shorter := tokens.truncate("\U0001fae8\U0001fae8", 1) // a token is a part of the character
	require.True(t, shorter)
	require.Empty(t, got)
}

// R19: of a very long prompt the beginning is counted and the rest estimated, however it is divided: to count
// all of 32 MiB would take half a minute.
func TestPromptOfManyBytes(t *testing.T) {
	t.Parallel()
	m := model{newTokenizer()}
	const length = 4 << 20
	text := strings.Repeat("1 ", length/2) // a token a byte
	want := maxCounted + (length-maxCounted)/4
	for name, messages := range map[string][]message{
		"one message": {{"", content(text)}},
		"one role":    {{text, ""}},
		"many":        slices.Repeat([]message{{"", content(text[:1<<10])}}, length>>10),
		"many roles":  slices.Repeat([]message{{text[:1<<10], ""}}, length>>10),
	} {
		require.Equal(t, 3+3*len(messages)+want, m.reply(messages, 0).usage.PromptTokens, name)
	}
}

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTruncate(t *testing.T) {
	t.Parallel()
	tokens := newTokenizer(defaultMaxBody)
	for limit, want := range []string{"", "Hello", "Hello,", "Hello, world", "Hello, world!", "Hello, world!"} {
		got, shorter := tokens.truncate("Hello, world!", limit)
		require.Equal(t, want, got)
		require.Equal(t, limit < 4, shorter)
	}
	got, shorter := tokens.truncate("\U0001fae8\U0001fae8", 1) // a token is a part of the character
	require.True(t, shorter)
	require.Empty(t, got)
}

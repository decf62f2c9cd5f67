package main

import (
	"strings"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// pieceSize bounds what the tokenizer is given at once, in bytes: some texts, such as spaces and line
// breaks in turn, cost it time that grows with the square of their length.
const pieceSize = 512

const (
	maxCounted    = 256 << 10 // how much of a prompt is counted, in bytes
	bytesPerToken = 4         // the usual estimate
)

// tokenizer counts tokens as OpenAI's models since GPT-4o do (o200k_base).
type tokenizer struct{ codec *codec.Codec }

// newTokenizer builds the vocabulary, which takes some milliseconds.
func newTokenizer() tokenizer { return tokenizer{codec.NewO200kBase()} }

// count returns the number of tokens in text. It takes less than a second for 1 MiB of the worst
// text; there the number may be off by one for each piece.
func (t tokenizer) count(text string) int {
	n := 0
	for rest := text; rest != ""; {
		piece := cutPiece(rest)
		rest = rest[len(piece):]
		tokens, err := t.codec.Count(piece)
		if err != nil {
			tokens = len(piece) / bytesPerToken // the codec has no error for valid UTF-8
		}
		n += tokens
	}
	return n
}

// promptCounter returns a counter for the texts of one request.
func (t tokenizer) promptCounter() *promptCounter { return &promptCounter{t, maxCounted} }

// promptCounter counts the texts of a request until it has seen maxCounted bytes, and estimates the rest, so
// that no request takes the tokenizer for long.
type promptCounter struct {
	tokens tokenizer
	left   int // bytes
}

func (p *promptCounter) count(text string) int {
	counted := clip(text, p.left)
	p.left -= len(counted)
	rest := len(text) - len(counted)
	return p.tokens.count(counted) + (rest+bytesPerToken-1)/bytesPerToken
}

// truncate returns the first limit tokens of a short text, and whether that cut anything off.
func (t tokenizer) truncate(text string, limit int) (string, bool) {
	_, tokens, err := t.codec.Encode(text)
	if err != nil || len(tokens) <= limit {
		return text, false
	}
	return strings.ToValidUTF8(strings.Join(tokens[:limit], ""), ""), true // a token may end within a character
}

// cutPiece returns the beginning of text, up to a blank, where a token begins anyway, or else up to
// any character.
func cutPiece(text string) string {
	if len(text) <= pieceSize {
		return text
	}
	piece := clip(text, pieceSize)
	if at := strings.LastIndexByte(piece, ' '); at > 0 {
		return piece[:at]
	}
	return piece
}

// clip shortens text, which is valid UTF-8, to at most size bytes without cutting a character in two.
func clip(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

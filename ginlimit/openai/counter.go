package openai

import (
	"strings"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

const (
	// tokenizedBytes is how much text of a request or an answer is tokenized: 1 MiB would take about a second.
	// Of a longer text, pieces at equal distances are tokenized.
	tokenizedBytes = 64 << 10
	// pieceBytes is what is tokenized at once. For some texts the time grows with the square of the length.
	pieceBytes = 512
)

// counter counts tokens like OpenAI's models since GPT-4o (o200k_base). The vocabulary is part of the
// program. It is safe for concurrent use.
type counter struct{ codec *codec.Codec }

func newCounter() counter { return counter{codec.NewO200kBase()} }

// count returns the number of tokens in texts. Up to tokenizedBytes it is exact except at the seams of
// pieces; above, it is projected from a sample. It takes at most about 60 ms.
func (t counter) count(texts []string) int {
	total := 0
	for _, text := range texts {
		total += len(text)
	}
	if total == 0 {
		return 0
	}
	stride := (total + tokenizedBytes - 1) / tokenizedBytes // 1: every piece
	at, next, seen, tokens := 0, 0, 0, 0                    // all in bytes but tokens
	for _, text := range texts {
		for text != "" {
			piece := firstPiece(text)
			if at >= next {
				tokens += t.countPiece(piece)
				seen += len(piece)
				next += stride * len(piece)
			}
			at += len(piece)
			text = text[len(piece):]
		}
	}
	return int((int64(tokens)*int64(total) + int64(seen) - 1) / int64(seen))
}

func (t counter) countPiece(piece string) int {
	n, err := t.codec.Count(strings.ToValidUTF8(piece, "\uFFFD"))
	if err != nil {
		return bytesToTokens(len(piece))
	}
	return n
}

// bytesToTokens is the usual estimate for text that is not tokenized.
func bytesToTokens(n int) int { return (n + 3) / 4 }

// firstPiece cuts before a blank, where a token begins anyway, or else between two characters.
func firstPiece(text string) string {
	if len(text) <= pieceBytes {
		return text
	}
	if blank := strings.LastIndexByte(text[:pieceBytes], ' '); blank > 0 {
		return text[:blank]
	}
	end := pieceBytes
	for end > pieceBytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

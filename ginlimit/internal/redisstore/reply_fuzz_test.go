package redisstore

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// FuzzReplies answers every script with any reply that a Redis protocol can carry: it is an error,
// or it is decisions that mean something, and say what the reply said.
func FuzzReplies(f *testing.F) {
	const array, small, large = 0, 1, 2 // what anyReply makes of these bytes
	admitted, rejected := []byte{small, 1, small, 3, small, 0}, []byte{small, 0, small, 5, small, 9}
	shapes := [][]byte{
		slices.Concat([]byte{array, 3}, admitted),
		slices.Concat([]byte{array, 3}, rejected),
		slices.Concat([]byte{array, 6}, admitted, admitted),
		slices.Concat([]byte{array, 6}, admitted, rejected),
		slices.Concat([]byte{array, 6}, rejected, admitted),
		slices.Concat([]byte{array, 6}, rejected, rejected),
		slices.Concat([]byte{array, 9}, admitted, admitted, rejected),
		{array, 0},
		{array, 4, small, 1, small, 3, small, 0, small, 0},
		{array, 3, small, 1, small, 0xff, small, 0}, // a negative count
		{array, 3, small, 0, small, 0xff, small, 9},
		{array, 3, small, 0, small, 3, small, 0xff}, // a negative wait
		{array, 3, small, 0, small, 3, small, 0},    // rejected without one
		{array, 3, small, 1, small, 3, small, 9},    // admitted with one
		{array, 3, small, 2, small, 3, small, 0},    // neither
		{array, 3, small, 2, small, 3, small, 9},
		binary.BigEndian.AppendUint64([]byte{array, 3, small, 0, small, 1, large}, math.MaxInt64),
		binary.BigEndian.AppendUint64([]byte{array, 3, small, 0, small, 1, large}, 1<<63),
	}
	for kind := range byte(kinds) {
		shapes = append(shapes, []byte{kind, 3, small, 1, small, 1, small, 0})
		for at := 2; at < 8; at += 2 {
			shape := []byte{array, 3, small, 1, small, 1, small, 0}
			shape[at] = kind
			shapes = append(shapes, shape)
		}
	}
	for _, shape := range shapes {
		for windows := range uint8(3) {
			f.Add(windows, shape)
		}
	}

	f.Fuzz(func(t *testing.T, moreWindows uint8, shape []byte) {
		claims := []budget.Claim{
			{Key: "a", Budget: requests(5, budget.Minute)},
			{Key: "b", Budget: requests(100, budget.Hour)},
			{Key: "c", Budget: requests(0, budget.Day)},
		}[:1+moreWindows%3]
		reply, _ := anyReply(shape, 0)
		s := New(&recorder{reply: reply}, nil, false)

		verdicts, _, err := s.Admit(t.Context(), "m", claims)
		requireDecisions(t, reply, verdicts, err)
		require.LessOrEqual(t, len(verdicts), len(claims))
		for i, v := range verdicts {
			last := i == len(verdicts)-1
			require.Equal(t, !last || len(verdicts) == len(claims) && v.Allowed, v.Allowed,
				"only the last one may reject: %v", verdicts)
		}

		verdicts, err = s.Peek(t.Context(), claims)
		requireDecisions(t, reply, verdicts, err)
		if err == nil {
			require.Len(t, verdicts, len(claims))
		}

		// These heed no reply but an error.
		require.NoError(t, s.Finish(t.Context(), budget.Admission{ID: "m", Claims: claims}, nil))
		require.NoError(t, s.Reset(t.Context(), []string{"a"}))
	})
}

// requireDecisions checks the outcome of a call: no replies beside an error, and otherwise at least
// one, each of them a decision that the raw reply spells out.
func requireDecisions(t *testing.T, raw any, replies []budget.Verdict, err error) {
	if err != nil {
		require.Nil(t, replies)
		require.Less(t, len(err.Error()), 500, "an error is no copy of the reply")
		return
	}
	require.NotEmpty(t, replies)
	var said []any
	for _, r := range replies {
		require.GreaterOrEqual(t, r.Used, 0)
		require.Equal(t, !r.Allowed, r.RetryAfter > 0 || r.TooLarge, "%+v", r)
		require.Zero(t, r.RetryAfter%time.Millisecond)
		allowed := int64(0)
		if r.Allowed {
			allowed = 1
		}
		wait := r.RetryAfter.Milliseconds()
		if r.TooLarge {
			wait = -1
		}
		said = append(said, allowed, int64(r.Used), wait)
	}
	require.Equal(t, raw, said)
}

// kinds is the number of kinds of values that anyReply makes: all that go-redis does.
const kinds = 10

// anyReply makes a reply of bytes and returns the rest of them. Nothing is nested deeper than 8.
func anyReply(shape []byte, depth int) (any, []byte) {
	take := func() (b byte) {
		if len(shape) > 0 {
			b, shape = shape[0], shape[1:]
		}
		return b
	}
	nested := func() (v any) {
		if depth < 8 {
			v, shape = anyReply(shape, depth+1)
		}
		return v
	}
	switch kind := take(); kind % kinds {
	case 0:
		values := make([]any, take()%16)
		for i := range values {
			values[i] = nested()
		}
		return values, shape
	case 1:
		return int64(int8(take())), shape
	case 2:
		var bits [8]byte
		shape = shape[copy(bits[:], shape):]
		return int64(binary.BigEndian.Uint64(bits[:])), shape
	case 3:
		n := min(int(take()), len(shape))
		text := string(shape[:n])
		shape = shape[n:]
		return text, shape
	case 4:
		return nil, shape
	case 5:
		return take()%2 == 1, shape
	case 6:
		return []float64{1, 0, -1, 1.5, math.NaN(), math.Inf(1)}[take()%6], shape
	case 7:
		return new(big.Int).Lsh(big.NewInt(int64(take())), 64), shape
	case 8:
		return map[any]any{int64(take()): nested()}, shape
	default:
		return errors.New("ERR inside an array"), shape
	}
}

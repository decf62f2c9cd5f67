package redistest

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadReplySplitsAStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, wantPushed, wantReply string }{
		{in: "+OK\r\n", wantReply: "+OK\r\n"},
		{in: "$-1\r\n", wantReply: "$-1\r\n"},
		{in: "$0\r\n\r\n", wantReply: "$0\r\n\r\n"},
		{in: "$4\r\na\r\nb\r\n", wantReply: "$4\r\na\r\nb\r\n"},
		{in: "*2\r\n:1\r\n*1\r\n$1\r\na\r\n", wantReply: "*2\r\n:1\r\n*1\r\n$1\r\na\r\n"},
		{in: "%1\r\n+k\r\n~2\r\n#t\r\n_\r\n", wantReply: "%1\r\n+k\r\n~2\r\n#t\r\n_\r\n"},
		{in: "|1\r\n+k\r\n+v\r\n:7\r\n", wantReply: "|1\r\n+k\r\n+v\r\n:7\r\n"},
		{in: ">1\r\n+note\r\n>1\r\n+more\r\n,1.5\r\n", wantPushed: ">1\r\n+note\r\n>1\r\n+more\r\n",
			wantReply: ",1.5\r\n"},
	} {
		r := bufio.NewReader(strings.NewReader(tt.in + "+next\r\n"))
		pushed, reply, err := readReply(r)
		require.NoError(t, err, "%q", tt.in)
		require.Equal(t, tt.wantPushed, string(pushed))
		require.Equal(t, tt.wantReply, string(reply))

		_, reply, err = readReply(r)
		require.NoError(t, err, "after %q", tt.in)
		require.Equal(t, "+next\r\n", string(reply))
	}
}

func TestReadValueRejects(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "+OK", "\r\n", "PING\r\n", "$x\r\n", "$5\r\nshort\r", "*2\r\n:1\r\n", "$9223372036854775807\r\n",
	} {
		_, err := readValue(bufio.NewReader(strings.NewReader(in)))
		require.Error(t, err, "%q", in)
	}
}

func TestIsScript(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"*3\r\n$7\r\nevalsha\r\n$3\r\nabc\r\n$1\r\n0\r\n":   true,
		"*3\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n0\r\n": true,
		"*2\r\n$3\r\nget\r\n$4\r\neval\r\n":                 false,
		"*1\r\n$4\r\nping\r\n":                              false,
		"+\r\n":                                             false,
	} {
		require.Equal(t, want, isScript([]byte(command)), "%q", command)
	}
}

// FuzzReadValue: whatever comes in, the bytes that are read are the bytes that came.
func FuzzReadValue(f *testing.F) {
	f.Add("*2\r\n$3\r\nget\r\n$1\r\nk\r\n")
	f.Add("%1\r\n+a\r\n|1\r\n+k\r\n+v\r\n_\r\n")
	f.Add("*-1\r\n$99999999999\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		value, err := readValue(bufio.NewReader(strings.NewReader(in)))
		if err == nil && (len(value) == 0 || !strings.HasPrefix(in, string(value))) {
			t.Fatalf("read %q of %q", value, in)
		}
	})
}

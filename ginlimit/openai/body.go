package openai

import (
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// body is a request body that has been read and can be read again from its start.
type body struct {
	io.Reader
	io.Closer
	text    string
	request *request
}

// readRequest reads the body of r and puts it back. A body that is not JSON is a request of unknown content.
// It fails only if reading fails; then handlers read the same bytes and get the same error. A body that was
// read before is not read again.
func readRequest(r *http.Request, maxBody int64) (*request, error) {
	if b, ok := r.Body.(*body); ok {
		return b.request, nil
	}
	if !mayBeJSON(r) || r.ContentLength > maxBody {
		return &request{}, nil
	}
	original := r.Body
	read, err := io.ReadAll(io.LimitReader(original, min(maxBody, 1<<62)+1))
	text := string(read)
	if err != nil {
		r.Body = &rest{io.MultiReader(strings.NewReader(text), failing{err}), original}
		return nil, err
	}
	if int64(len(text)) > maxBody {
		r.Body = &rest{io.MultiReader(strings.NewReader(text), original), original}
		return &request{}, nil
	}
	b := &body{strings.NewReader(text), original, text, parse(text, r)}
	r.Body = b
	return b.request, nil
}

// replace replaces a body that readRequest has read by text.
func (b *body) replace(r *http.Request, text string) {
	r.Body = &body{strings.NewReader(text), b.Closer, text, b.request}
	if r.ContentLength >= 0 {
		r.ContentLength = int64(len(text))
	}
	if r.Header.Get("Content-Length") != "" {
		r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	}
}

// mayBeJSON reports whether a body is worth reading: there is one, and it is not an upload.
func mayBeJSON(r *http.Request) bool {
	if !hasBody(r) {
		return false
	}
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	kind, _, _ := strings.Cut(mediaType, "/")
	return !slices.Contains([]string{"multipart", "audio", "image", "video"}, kind) &&
		mediaType != "application/octet-stream"
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// rest is a body that has been read in part.
type rest struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

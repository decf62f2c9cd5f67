package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// readValue reads one whole RESP value (version 2 or 3), a command or a reply, as the bytes it came in.
func readValue(r *bufio.Reader) ([]byte, error) {
	value, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	parts := 0
	switch kind := value[0]; kind {
	case '+', '-', ':', '_', '#', ',', '(': // all on this line
		return value, nil
	case '$', '=', '!', '*', '~', '>', '%', '|': // a length on this line, or -1 for null
		if parts, err = strconv.Atoi(string(bytes.TrimSpace(value[1:]))); err != nil || parts < 0 {
			return value, err
		}
		switch kind {
		case '$', '=', '!':
			size := int64(parts) + int64(len("\r\n"))
			text, err := io.ReadAll(io.LimitReader(r, size))
			if err == nil && int64(len(text)) != size {
				err = io.ErrUnexpectedEOF
			}
			return append(value, text...), err
		case '%':
			parts *= 2 // keys and values
		case '|':
			parts = 2*parts + 1 // attributes, then the value that they describe
		}
	default:
		return nil, fmt.Errorf("no RESP type: %q", value)
	}
	for range parts {
		part, err := readValue(r)
		if err != nil {
			return nil, err
		}
		value = append(value, part...)
	}
	return value, nil
}

// readReply reads one reply and whatever the server pushed before it.
func readReply(r *bufio.Reader) (pushed, reply []byte, err error) {
	for {
		value, err := readValue(r)
		if err != nil || value[0] != '>' {
			return pushed, value, err
		}
		pushed = append(pushed, value...)
	}
}

// isScript tells whether a command, as it came in, is EVAL or EVALSHA.
func isScript(command []byte) bool {
	fields := bytes.SplitN(command, []byte("\r\n"), 4) // *5 $7 evalsha …
	return len(fields) == 4 && (bytes.EqualFold(fields[2], []byte("evalsha")) ||
		bytes.EqualFold(fields[2], []byte("eval")))
}

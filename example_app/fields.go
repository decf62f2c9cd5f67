package main

import (
	"encoding/json"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/tidwall/gjson"
)

// fields are members of a request body that is a JSON object, by name. They are parts of its text, so that a
// body of any number of tiny values takes no more memory than its length.
type fields map[string]gjson.Result

// readFields returns those fields of a request that have these names; of two of one name the last one counts.
// A null is as if it were not there.
func readFields(c *gin.Context, names ...string) (fields, *apiError) {
	body, _ := c.Get(gin.BodyBytesKey)
	text, _ := body.([]byte)
	if !json.Valid(text) { // which bounds how deep values may be nested, too
		return nil, errNotJSON
	}
	root := gjson.ParseBytes(text)
	if !root.IsObject() && root.Type != gjson.Null {
		return nil, errNotJSON
	}
	found := fields{}
	root.ForEach(func(name, value gjson.Result) bool {
		if slices.Contains(names, name.Str) {
			delete(found, name.Str)
			if value.Type != gjson.Null {
				found[name.Str] = value
			}
		}
		return true
	})
	return found, nil
}

func wrongType(param string) *apiError {
	return invalid(param, "A field of the request has the wrong type.")
}

// text is a string, "" where there is none.
func (f fields) text(name string) (string, *apiError) {
	value, ok := f[name]
	if ok && value.Type != gjson.String {
		return "", wrongType(name)
	}
	return value.Str, nil
}

// flag is a boolean, false where there is none.
func (f fields) flag(name string) (bool, *apiError) {
	value, ok := f[name]
	if ok && !value.IsBool() {
		return false, wrongType(name)
	}
	return value.Bool(), nil
}

// positive is a whole number from 1 on, 0 where there is none. A number above the end of int32 is taken for
// that.
func (f fields) positive(name string) (int, *apiError) {
	const most = 1<<31 - 1
	value, ok := f[name]
	switch {
	case !ok:
		return 0, nil
	case value.Type != gjson.Number || value.Num > 1<<63:
		return 0, wrongType(name)
	case value.Num < 1:
		return 0, invalid(name, name+" must be at least 1.")
	case value.Num > most:
		return most, nil
	case value.Num != float64(int(value.Num)):
		return 0, wrongType(name)
	}
	return int(value.Num), nil
}

package ginlimit

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// userIDOf is the id that an auth middleware stored; "" means nobody.
func userIDOf(value any) (string, error) {
	if id, ok := value.(string); ok { // nearly always
		return id, nil
	}
	if isNil(value) {
		return "", nil
	}
	switch id := value.(type) {
	case json.Number:
		return wholeNumber(id)
	case *json.Number:
		return wholeNumber(*id)
	case fmt.Stringer:
		return id.String(), nil
	}
	rv := reflect.ValueOf(value)
	switch {
	case rv.Kind() == reflect.String:
		return rv.String(), nil
	case rv.CanInt():
		return strconv.FormatInt(rv.Int(), 10), nil
	case rv.CanUint():
		return strconv.FormatUint(rv.Uint(), 10), nil
	case rv.CanFloat():
		return wholeFloat(rv)
	}
	return "", fmt.Errorf("%T is no string, number or fmt.Stringer", value)
}

// wholeNumber refuses other forms of a number, because they would be other ids of the same user.
func wholeNumber(n json.Number) (string, error) {
	digits := strings.TrimPrefix(n.String(), "-")
	switch {
	case n == "", n == "0":
		return n.String(), nil
	case digits == "", digits[0] == '0', strings.Trim(digits, "0123456789") != "":
		return "", fmt.Errorf("json.Number %q is no whole number in plain digits", n.String())
	}
	return n.String(), nil
}

// wholeFloat refuses floats so large that several whole numbers, of several users, become one.
func wholeFloat(rv reflect.Value) (string, error) {
	bits := 53
	if rv.Kind() == reflect.Float32 {
		bits = 24
	}
	f := rv.Float()
	negativeZero := f == 0 && math.Signbit(f)
	if f != math.Trunc(f) || math.Abs(f) >= math.Ldexp(1, bits) || negativeZero {
		return "", fmt.Errorf("%s %v is no whole number below 2^%d; store it as a string", rv.Type(), f, bits)
	}
	return strconv.FormatInt(int64(f), 10), nil
}

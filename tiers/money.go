package tiers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Money is an amount in millionths of the operator's currency unit: Money(2_500_000) is 2.50. The currency is
// not named; use one currency only. The zero value is no money. The largest amount is that of int64, about
// 9.2 million million units; arithmetic above it wraps around.
type Money int64

// unit is one unit of the currency.
const unit Money = 1_000_000

// String returns the amount in units of the currency, with two to six decimals and without an exponent: 2.50,
// 0.000125, -3.00.
func (m Money) String() string {
	sign, units, rest := "", m/unit, m%unit
	if m < 0 {
		sign, units, rest = "-", -units, -rest
	}
	decimals := fmt.Sprintf("%06d", int64(rest))
	return fmt.Sprintf("%s%d.%s", sign, int64(units), decimals[:2]+strings.TrimRight(decimals[2:], "0"))
}

// MarshalText returns what [Money.String] does. The error is nil.
func (m Money) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads decimal digits with at most six decimals: 2.50, 3, 0.000125; a minus sign is allowed.
// An exponent, a plus sign, a separator or a needless leading zero is an error, and so is an amount that
// Money cannot hold.
func (m *Money) UnmarshalText(text []byte) error {
	amount, err := parseMoney(string(text))
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("tiers: amount %s is out of range", show(string(text)))
	case err != nil:
		return fmt.Errorf("tiers: want %s, got %s", wantMoney, show(string(text)))
	}
	*m = amount
	return nil
}

// MarshalJSON returns a JSON number, written as [Money.String] does. The error is nil.
func (m Money) MarshalJSON() ([]byte, error) { return m.MarshalText() }

// UnmarshalJSON reads a JSON number like [Money.UnmarshalText]. As always in encoding/json, null changes
// nothing.
func (m *Money) UnmarshalJSON(number []byte) error {
	if string(number) == "null" {
		return nil
	}
	return m.UnmarshalText(number)
}

// wantMoney is the form of an amount, for errors.
const wantMoney = "an amount with at most 6 decimals (2.50)"

// parseMoney returns strconv.ErrSyntax for text that is not an amount and strconv.ErrRange for an amount that
// Money cannot hold. It accepts only one spelling of an amount, except for zeros at the end of the decimals.
func parseMoney(text string) (Money, error) {
	number, negative := strings.CutPrefix(text, "-")
	units, decimals, point := strings.Cut(number, ".")
	switch {
	case !digits(units), len(units) > 1 && units[0] == '0',
		point && !digits(decimals), len(decimals) > 6:
		return 0, strconv.ErrSyntax
	}
	millionths := units + decimals + "000000"[len(decimals):]
	if negative {
		millionths = "-" + millionths
	}
	amount, err := strconv.ParseInt(millionths, 10, 64)
	if err != nil {
		return 0, strconv.ErrRange
	}
	return Money(amount), nil
}

// digits reports whether s is one or more of the digits 0 to 9.
func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

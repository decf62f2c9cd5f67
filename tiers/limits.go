package tiers

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"
)

// Unlimited as a number of [Limits] means that the tier deliberately has no such budget. In a file it is the
// word unlimited.
const Unlimited = -1

// Limits are the budgets of one tier. Every window slides: a budget bounds what is used in any span of its
// length. PerMinute and PerDay are required. The other numbers may be zero, which means no such budget, like
// Unlimited. The zero value is not valid in a table: a tier without budgets is a mistake.
//
// For each unit (requests, tokens or money) a longer window allows at least as much as a shorter one. A
// budget that is zero or [Unlimited] is not compared.
//
// A new budget is one more field, an int or [Money]. It becomes a field of the tier file under its yaml name.
type Limits struct {
	// PerMinute is the number of requests in any 60 seconds, at least 1 or Unlimited.
	PerMinute int `yaml:"per_minute" json:"per_minute" validate:"limit"`
	// PerHour is the number of requests in any 60 minutes. 0 = no such budget.
	PerHour int `yaml:"per_hour,omitempty" json:"per_hour,omitempty" validate:"optional"`
	// PerDay is the number of requests in any 24 hours, at least 1 or Unlimited.
	PerDay int `yaml:"per_day" json:"per_day" validate:"limit"`
	// PerMonth is the number of requests in any 30 days. 0 = no such budget.
	PerMonth int `yaml:"per_month,omitempty" json:"per_month,omitempty" validate:"optional"`

	// TokensPerMinute, TokensPerDay and TokensPerMonth are the tokens that models read and write in any 60
	// seconds, 24 hours and 30 days. 0 = no such budget. At most 2^53, about 9.0e15.
	TokensPerMinute int `yaml:"tokens_per_minute,omitempty" json:"tokens_per_minute,omitempty" validate:"sum"`
	TokensPerDay    int `yaml:"tokens_per_day,omitempty" json:"tokens_per_day,omitempty" validate:"sum"`
	TokensPerMonth  int `yaml:"tokens_per_month,omitempty" json:"tokens_per_month,omitempty" validate:"sum"`

	// SpendPerDay and SpendPerMonth are amounts of money in any 24 hours and 30 days. 0 = no such budget. At
	// most 2^53 millionths, about 9.0e9 units of the currency.
	SpendPerDay   Money `yaml:"spend_per_day,omitempty" json:"spend_per_day,omitempty" validate:"sum"`
	SpendPerMonth Money `yaml:"spend_per_month,omitempty" json:"spend_per_month,omitempty" validate:"sum"`

	// Concurrent is the number of requests in progress at once. 0 = no such budget.
	Concurrent int `yaml:"concurrent,omitempty" json:"concurrent,omitempty" validate:"optional"`
}

// maxSum bounds budgets from which one request may take any amount. Their usage is added up in doubles, which
// are exact up to this number. Counts of requests never get near it.
const maxSum = 1 << 53

// validate returns the validator, made once: it caches what it learns about a type.
var validate = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(fileName)
	limit := fmt.Sprintf("eq=%d|min=1", Unlimited)
	v.RegisterAlias("limit", limit)
	v.RegisterAlias("optional", "omitempty,"+limit)
	v.RegisterAlias("sum", fmt.Sprintf("omitempty,%s,max=%d", limit, int64(maxSum)))
	v.RegisterStructValidation(longerAllowsNoLess, Limits{})
	return v
})

// longerAllowsNoLess compares the budgets of one unit. It skips those that are zero, unlimited or otherwise
// negative.
func longerAllowsNoLess(sl validator.StructLevel) {
	for _, shortestFirst := range [][]string{
		{"PerMinute", "PerHour", "PerDay", "PerMonth"},
		{"TokensPerMinute", "TokensPerDay", "TokensPerMonth"},
		{"SpendPerDay", "SpendPerMonth"},
	} {
		most, ofShorter := int64(0), ""
		for _, name := range shortestFirst {
			field, _ := reflect.TypeFor[Limits]().FieldByName(name)
			value := sl.Current().FieldByIndex(field.Index)
			switch limit := value.Int(); {
			case limit < 1:
			case limit < most:
				sl.ReportError(value.Interface(), fileName(field), name, "gtefield", ofShorter)
			default:
				most, ofShorter = limit, name
			}
		}
	}
}

// problems lists the rules that l breaks: first those of each number in the order of the fields, then those
// between numbers.
func (l Limits) problems() []string {
	var problems []string
	// Struct fails in no other way when it is given a struct.
	broken, _ := errors.AsType[validator.ValidationErrors](validate().Struct(l))
	for _, field := range broken {
		_, money := field.Value().(Money)
		bound := "less than 1"
		switch {
		case field.ActualTag() == "gtefield":
			bound = "less than " + l.describe(field.Param())
		case field.ActualTag() == "max" && money:
			bound = "more than " + Money(maxSum).String()
		case field.ActualTag() == "max":
			bound = "more than " + field.Param()
		case money:
			bound = "less than " + Money(1).String()
		}
		problems = append(problems, fmt.Sprintf("%s: %v is %s", field.Field(), field.Value(), bound))
	}
	return problems
}

// describe returns the name in a file and the value of a Go field: "per_minute 5".
func (l Limits) describe(goName string) string {
	field, _ := reflect.TypeFor[Limits]().FieldByName(goName)
	return fmt.Sprintf("%s %v", fileName(field), reflect.ValueOf(l).FieldByIndex(field.Index))
}

// fileName returns how a tier file spells a field of Limits.
func fileName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	return name
}
